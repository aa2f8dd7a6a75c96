"""Train, move the model, sync, train on: exactly the run that was never moved. For every optimizer, on simulated CUDA."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from torch import nn

import samedevice
from samedevice.placing.state_homes import layout


class Moments(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


@dataclasses.dataclass
class Block:
    left: torch.Tensor
    history: deque


class Nested(torch.optim.Optimizer):
    """Keeps what third-party optimizers keep: nested state, state under no parameter, tensors in its groups."""

    def __init__(self, params, lr=0.01):
        super().__init__(params, {"lr": lr, "scale": torch.ones(1), "ema": None})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            if group["ema"] is None:
                group["ema"] = [torch.zeros_like(p) for p in group["params"]]
            for p, ema in zip(group["params"], group["ema"], strict=True):
                state = self.state[p]
                if not state:
                    state["step"] = torch.tensor(0.0)
                    state["norm"] = torch.zeros((), device=p.device)
                    state["moments"] = {"all": Moments(torch.zeros_like(p), torch.zeros_like(p))}
                    state["block"] = Block(torch.zeros_like(p), deque([torch.zeros_like(p)], maxlen=2))
                    state["names"] = ("a", 3, None)
                state["step"] += 1
                state["norm"].mul_(0.9).add_(p.grad.norm(), alpha=0.1)
                moments = state["moments"]["all"]
                moments.first.lerp_(p.grad, 0.1)
                moments.second.mul_(0.9).addcmul_(p.grad, p.grad)
                state["block"].history.append(moments.first.clone())
                state["block"].left.add_(sum(state["block"].history))
                ema.lerp_(p, 0.1)
                update = (moments.first + 0.01 * state["block"].left + 0.001 * ema) / (1 + state["norm"])
                p.sub_(update * group["scale"], alpha=group["lr"] / float(state["step"]))
        total = self.state.setdefault("global", {"seen": torch.zeros(4, device=p.device)})
        total["seen"].add_(p.grad.abs().sum())
        p.add_(total["seen"].sum(), alpha=1e-6)


class Lookahead:
    """A wrapper that is no Optimizer, with slow weights of its own."""

    def __init__(self, params):
        self.optimizer = torch.optim.AdamW(params, lr=0.01, foreach=False)
        self.param_groups = self.optimizer.param_groups
        self.state = {p: {"slow": p.detach().clone()} for group in self.param_groups for p in group["params"]}

    def zero_grad(self):
        self.optimizer.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        self.optimizer.step()
        for p, state in self.state.items():
            state["slow"].lerp_(p, 0.5)
            p.copy_(state["slow"])


class FromAdamW(torch.optim.AdamW):
    """A subclass with one entry of its own."""

    @torch.no_grad()
    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].setdefault("drift", torch.zeros_like(p)).lerp_(p, 0.1)
                p.add_(self.state[p]["drift"], alpha=1e-3)


optim = torch.optim


def of(cls, **options):
    return lambda params: cls(params, lr=0.01, **options)


# On CUDA most classes choose `foreach` by themselves, and its last bits differ from the loop's: so it is given here.
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    **{
        f"{cls.__name__}{variant}": of(cls, **options)
        for cls in (
            *(optim.Adadelta, optim.Adamax, optim.Adam, optim.AdamW, optim.ASGD, optim.NAdam, optim.RAdam),
            *(optim.RMSprop, optim.Rprop),
        )
        for variant, options in {
            "": {"foreach": False},
            " foreach": {"foreach": True},
            " capturable": {"capturable": True},
        }.items()
    },
    "Adafactor": of(optim.Adafactor),
    "Adagrad": of(optim.Adagrad),
    "Adam amsgrad": of(optim.Adam, amsgrad=True, foreach=False),
    "Adam fused": of(optim.Adam, fused=True),
    "Adam tensor lr": lambda params: optim.Adam(params, lr=torch.tensor([0.01]), foreach=False),
    "AdamW fused amsgrad": of(optim.AdamW, fused=True, amsgrad=True),
    "LBFGS": of(optim.LBFGS, max_iter=4, history_size=3),
    "LBFGS strong_wolfe": of(optim.LBFGS, max_iter=4, line_search_fn="strong_wolfe"),
    "Muon": lambda params: optim.Muon([p for p in params if p.ndim == 2], lr=0.01),
    "NAdam decoupled": of(optim.NAdam, decoupled_weight_decay=True, weight_decay=0.1, foreach=True),
    "RMSprop momentum centered": of(optim.RMSprop, momentum=0.9, centered=True, foreach=False),
    "SGD": of(optim.SGD, foreach=False),
    "SGD momentum nesterov": of(optim.SGD, momentum=0.9, nesterov=True, foreach=False),
    "SGD momentum fused": of(optim.SGD, momentum=0.9, fused=True),
    "SparseAdam": lambda params: optim.SparseAdam([p for p in params if p.shape == (7, 4)], lr=0.01),
    "transformers.Adafactor": lambda params: transformers.Adafactor(params, beta1=0.9),
    "a subclass of AdamW": lambda params: FromAdamW(params, foreach=False),
    "a wrapper (Lookahead)": Lookahead,
    "an optimizer with nested state": Nested,
}


class Model(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.embedding = nn.Embedding(7, 4, sparse=sparse)
        self.layers = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))

    def forward(self, x):
        return self.layers(self.embedding(x)).mean(1)


def trained(name, devices):
    """The weights after three steps on each of `devices`, the model moved and the optimizer synced in between."""
    torch.manual_seed(0)
    model = Model(sparse=name == "SparseAdam").to(devices[0])
    optimizer = OPTIMIZERS[name](list(model.parameters()))
    inputs, labels = torch.randint(7, (6, 5)), torch.randint(3, (6,))
    moved = []
    for device in devices:
        model.to(device)
        moved.append(samedevice.sync_optimizer(optimizer))
        assert samedevice.sync_optimizer(optimizer) == ()
        report = samedevice.check(model, optimizer=optimizer, device=device)
        assert [f for f in report.findings if f.code == "SD201"] == []

        def closure(device=device):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
            loss.backward()
            return loss

        for _ in range(3):
            if "LBFGS" not in name:
                closure()
                optimizer.step()
            else:
                optimizer.step(closure)
    return [p.detach().cpu() for p in model.parameters()], moved


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_as_if_nothing_had_moved(name):
    # `capturable` needs an accelerator from the start.
    route = ["cuda:0", "cuda:1", "cuda:0"] if "capturable" in name else ["cpu", "cuda:0", "cuda:1", "cpu"]
    with samedevice.simulate("cuda:2"):
        expected, moved_when_staying = trained(name, [route[0]] * len(route))
        found, moved = trained(name, route)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert not any(moved_when_staying)
    assert name == "SGD" or all(moved[1:])


def test_which_state_stays_on_the_cpu_is_asked_of_torch_itself():
    assert layout(optim.Adam) == {"step": True, "exp_avg": False, "exp_avg_sq": False}
    assert layout(FromAdamW) == layout(optim.AdamW)
    # All of ASGD is on the device, `mu_product` of NAdam is not: names alone would not tell.
    assert set(layout(optim.ASGD).values()) == {False}
    assert layout(optim.NAdam)["mu_product"]
    assert layout(Nested) == {} == layout(optim.LBFGS)
