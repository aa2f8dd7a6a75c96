"""Train, move the model, sync, train on: exactly the run that was never moved, for every optimizer."""

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
from samedevice.placing.optimizer_tensors import optimizers_within, own_tensors
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
    """The model and optimizer after three steps on each of `devices`, moved and synced in between."""
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
    return model, optimizer, moved


def row(name, optimizer):
    """The optimizer's line of the table in docs/optimizers.md."""
    keys = {"state": {}, "free state": {}, "host state": {}, "group tensor": {}}
    for path, one in optimizers_within(optimizer, "optimizer"):
        for found in own_tensors(path, one):
            # Past `state[parameter]`, which is the root of a path, past `state`, or past `param_groups[0]`.
            skipped = 0 if ".state[" in found.path.root else 2 if found.kind == "group tensor" else 1
            keys[found.kind][found.path.steps()[skipped].key] = True
    keys["state"] |= keys.pop("free state")
    cells = [", ".join(f"`{key}`" for key in found) for found in keys.values()]
    return f"| `{name}` | {' | '.join(cell or '-' for cell in cells)} | exact |"


def takes_lr_with_a_dimension():
    optimizer = optim.Adam([nn.Parameter(torch.ones(1))], lr=torch.tensor([0.01]), foreach=False)
    optimizer.param_groups[0]["params"][0].grad = torch.ones(1)
    try:
        optimizer.step()
    except TypeError:  # seen in 2.6
        return False
    return True


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_as_if_nothing_had_moved(name):
    if name == "Muon" and not hasattr(optim, "Muon"):
        pytest.skip("torch has Muon from 2.9 on")
    if name == "Adam tensor lr" and not takes_lr_with_a_dimension():
        pytest.skip("the installed torch takes no lr of one dimension")
    # `capturable` needs an accelerator from the start.
    route = ["cuda:0", "cuda:1", "cuda:0"] if "capturable" in name else ["cpu", "cuda:0", "cuda:1", "cpu"]
    with samedevice.simulate("cuda:2"):
        stayed, _, moved_when_staying = trained(name, [route[0]] * len(route))
        went, optimizer, moved = trained(name, route)
        for one, other in zip(went.parameters(), stayed.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
        assert row(name, optimizer) in DOCUMENTED
    assert not any(moved_when_staying)
    assert name == "SGD" or all(moved[1:])


DOCUMENTED = (Path(__file__).parents[2] / "docs" / "optimizers.md").read_text().splitlines()


def test_the_table_in_the_documentation_has_no_other_rows():
    rows = [line.split("|")[1].strip().strip("`") for line in DOCUMENTED if line.endswith("| exact |")]
    assert rows == list(OPTIMIZERS)


def test_which_state_stays_on_the_cpu_is_asked_of_torch_itself():
    assert layout(optim.Adam) == {"step": True, "exp_avg": False, "exp_avg_sq": False}
    assert layout(FromAdamW) == layout(optim.AdamW)
    # All of ASGD is on the device, `mu_product` of NAdam is not: names alone would not tell.
    assert set(layout(optim.ASGD).values()) == {False}
    assert layout(optim.NAdam)["mu_product"]
    assert layout(Nested) == {} == layout(optim.LBFGS)


def stepped(optimizer_of, model=None):
    model = model or nn.Linear(2, 2)
    optimizer = optimizer_of(model.parameters())
    model(torch.ones(1, 2, device=model.weight.device)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_what_was_moved_is_named_and_what_was_right_is_the_same_object():
    with samedevice.simulate("cuda"):
        model, optimizer = stepped(optim.Adam)
        before = {parameter: dict(state) for parameter, state in optimizer.state.items()}
        states = list(optimizer.state.values())
        model.to("cuda")
        assert samedevice.sync_optimizer(optimizer) == tuple(
            f'optimizer.state[optimizer.param_groups[0]["params"][{i}]]["{name}"]'
            for i in (0, 1)
            for name in ("exp_avg", "exp_avg_sq")
        )
        assert all(one is other for one, other in zip(states, optimizer.state.values(), strict=True))
        for parameter, state in optimizer.state.items():
            assert state["step"] is before[parameter]["step"]
            assert state["exp_avg"].device == parameter.device
            assert before[parameter]["exp_avg"].device.type == "cpu"


def test_names_that_the_optimizer_was_given_are_used():
    with samedevice.simulate("cuda"):
        model = nn.Linear(2, 2)
        optimizer = optim.SGD(model.named_parameters(), momentum=0.9)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        model.to("cuda")
        assert samedevice.sync_optimizer(optimizer) == tuple(
            f'optimizer.state[{name}]["momentum_buffer"]' for name in ("weight", "bias")
        )


def test_step_comes_back_to_the_cpu_and_goes_where_capturable_wants_it():
    with samedevice.simulate("cuda"):
        _, optimizer = stepped(optim.Adam, nn.Linear(2, 2).cuda())
        for state in optimizer.state.values():
            state["step"] = state["step"].cuda()
        assert len(samedevice.sync_optimizer(optimizer)) == 2
        assert {state["step"].device.type for state in optimizer.state.values()} == {"cpu"}
        for group in optimizer.param_groups:
            group["capturable"] = True
        assert len(samedevice.sync_optimizer(optimizer)) == 2
        assert {state["step"].device.type for state in optimizer.state.values()} == {"cuda"}


def test_a_resumed_optimizer_whose_model_moved_afterwards():
    with samedevice.simulate("cuda"):
        _, saved = stepped(optim.AdamW)
        model = nn.Linear(2, 2)
        optimizer = optim.AdamW(model.parameters())
        optimizer.load_state_dict(saved.state_dict())
        model.cuda()
        model(torch.ones(1, 2, device="cuda")).sum().backward()
        with pytest.raises(RuntimeError, match="same device"):
            optimizer.step()
        samedevice.sync_optimizer(optimizer)
        optimizer.step()


def test_state_that_an_optimizer_makes_before_its_first_step():
    with samedevice.simulate("cuda"):
        model = nn.Linear(2, 2)
        optimizer = optim.Adagrad(model.parameters())
        model.cuda()
        assert len(samedevice.sync_optimizer(optimizer)) == 2


def test_parameters_on_several_devices_keep_their_state_beside_them():
    with samedevice.simulate("cuda:2"):
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        optimizer = optim.SGD(model.parameters(), momentum=0.9)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        model[0].to("cuda:0")
        model[1].to("cuda:1")
        assert len(samedevice.sync_optimizer(optimizer)) == 4
        assert all(state["momentum_buffer"].device == p.device for p, state in optimizer.state.items())


def test_views_of_one_memory_stay_views_of_one_memory():
    with samedevice.simulate("cuda"):
        model = nn.Linear(2, 2)
        optimizer = optim.SGD(model.parameters(), momentum=0.9)
        flat = torch.zeros(6)
        optimizer.state[model.weight]["momentum_buffer"] = flat[:4].view(2, 2)
        optimizer.state[model.bias]["momentum_buffer"] = flat[4:]
        model.cuda()
        samedevice.sync_optimizer(optimizer)
        weight, bias = (optimizer.state[p]["momentum_buffer"] for p in (model.weight, model.bias))
        assert weight.untyped_storage().data_ptr() == bias.untyped_storage().data_ptr()


def test_a_zero_dimensional_cpu_number_of_a_third_party_optimizer_is_its_own_choice():
    class Own(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                self.state[p] = {"average": torch.zeros_like(p), "product": torch.tensor(1.0)}

    with samedevice.simulate("cuda"):
        model, optimizer = stepped(Own, nn.Linear(2, 2).cuda())
        assert samedevice.sync_optimizer(optimizer) == ()
        assert samedevice.check(model, optimizer=optimizer).ok
        model.cpu()
        # As `Optimizer.load_state_dict` does with it: all but `step` goes to its parameter.
        assert len(samedevice.sync_optimizer(optimizer)) == 2


class Stubborn(torch.Tensor):
    def to(self, *args, **kwargs):
        raise RuntimeError("not today")


def test_all_or_nothing():
    model, optimizer = stepped(optim.Adam)
    last = optimizer.state[model.bias]
    last["exp_avg_sq"] = last["exp_avg_sq"].as_subclass(Stubborn)
    with samedevice.simulate("cuda"):
        model.cuda()
        with pytest.raises(samedevice.MoveError) as raised:
            samedevice.sync_optimizer(optimizer)
        assert str(raised.value) == (
            'optimizer.state[optimizer.param_groups[0]["params"][1]]["exp_avg_sq"] '
            "could not be moved from cpu to cuda:0, and nothing was changed. RuntimeError: not today"
        )
        assert optimizer.state[model.weight]["exp_avg"].device.type == "cpu"


def test_state_on_meta_has_no_values_to_move():
    model, optimizer = stepped(optim.Adam)
    optimizer.state[model.bias]["exp_avg"] = torch.empty(2, device="meta")
    with pytest.raises(samedevice.MoveError, match="from meta to cpu"):
        samedevice.sync_optimizer(optimizer)


def test_state_does_not_follow_a_parameter_to_meta_where_it_would_lose_its_values():
    parameter = nn.Parameter(torch.empty(2, device="meta"))
    optimizer = optim.SGD([parameter], momentum=0.9)
    optimizer.state[parameter]["momentum_buffer"] = buffer = torch.ones(2)
    assert samedevice.sync_optimizer(optimizer) == ()
    assert optimizer.state[parameter]["momentum_buffer"] is buffer


@pytest.mark.parametrize("nothing", [None, 3, [], nn.Linear(1, 1)])
def test_what_is_no_optimizer_is_refused(nothing):
    with pytest.raises(samedevice.UsageError, match="sync_optimizer takes an optimizer"):
        samedevice.sync_optimizer(nothing)


class Projector:
    """What GaLore and its kin keep in state: an object that nobody said how to open."""

    def __init__(self, p):
        self.rank = 1
        self.basis = [torch.eye(p.shape[-1], device=p.device)]


class WithObjects(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
        self.masks = {}

    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            state.setdefault("projector", Projector(p))
            self.masks.setdefault(p, torch.ones_like(p))
            p.sub_(0.1 * (p.grad * self.masks[p]) @ state["projector"].basis[0])


class Wrapper:
    """Has its groups by a property, and state of its own by the parameters' ids."""

    def __init__(self, params):
        self.inner = optim.SGD(params, momentum=0.9)
        self._seen = {id(p): [torch.zeros_like(p)] for p in self.param_groups[0]["params"]}

    @property
    def param_groups(self):
        return self.inner.param_groups

    @torch.no_grad()
    def step(self):
        self.inner.step()
        for p in self.param_groups[0]["params"]:
            self._seen[id(p)][0].add_(p)


def test_objects_in_state_and_tables_beside_it():
    with samedevice.simulate("cuda"):
        model, optimizer = stepped(WithObjects)
        projector = optimizer.state[model.weight]["projector"]
        model.cuda()
        assert [f.cause for f in samedevice.check(model, optimizer=optimizer).findings] == ["optimizer-state"]
        assert samedevice.sync_optimizer(optimizer) == tuple(
            f'optimizer.{where.format(f"""optimizer.param_groups[0]["params"][{i}]""")}'
            for where in ('state[{}]["projector"].basis[0]', "masks[{}]")
            for i in (0, 1)
        )
        assert optimizer.state[model.weight]["projector"] is projector
        assert samedevice.check(model, optimizer=optimizer).ok
        model(torch.ones(1, 2, device="cuda")).sum().backward()
        optimizer.step()


def test_a_wrapper_without_groups_of_its_own():
    with samedevice.simulate("cuda"):
        model, optimizer = stepped(Wrapper)
        model.cuda()
        assert samedevice.sync_optimizer(optimizer)[-1] == (
            'optimizer.inner.state[optimizer.inner.param_groups[0]["params"][1]]["momentum_buffer"]'
        )
        assert optimizer._seen[id(model.weight)][0].device.type == "cuda"
        assert samedevice.check(model, optimizer=optimizer).ok


def test_a_number_in_state_that_may_be_on_either_side_is_moved_and_not_blamed():
    class Scalars(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                self.state[p] = {"norm": torch.zeros((), device=p.device)}

    with samedevice.simulate("cuda"):
        model, optimizer = stepped(Scalars)
        model.cuda()
        assert samedevice.check(model, optimizer=optimizer).ok
        assert len(samedevice.sync_optimizer(optimizer)) == 2
        assert samedevice.sync_optimizer(optimizer) == ()
