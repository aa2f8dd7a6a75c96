"""What a user writes around a model: it is moved, trained a step, and its tensors are collected."""

from __future__ import annotations

from typing import Any

import numpy
import torch

import samedevice


def train_a_step(family: Any, device: str, *, behind: bool = False, part: bool = False) -> dict[str, Any]:
    """Forward, backward, one step of the optimizer.

    Args:
        family: an entry of the table.
        device: where to.
        behind: plant a bug: an entry of the batch stays on the CPU.
        part: plant a bug: a submodule goes back to the CPU.

    Returns:
        All tensors there are by then, by name.
    """
    torch.manual_seed(0)
    numpy.random.seed(0)
    model = family.make().train()
    batch = family.batch()
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    left = {family.behind: batch[family.behind]} if behind else {}
    batch = samedevice.move_to_device(batch, device) | left
    if part:
        model.get_submodule(family.part).cpu()
    output = model(**batch)  # the user's own line
    loss = family.loss(output)
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return dict(
        _tensors(
            {
                "output": output,
                "loss": loss,
                "state": dict(model.state_dict()),
                "gradients": gradients,
                "optimizer": {
                    name: {key: value for key, value in optimizer.state[p].items() if key != "step"}
                    for name, p in model.named_parameters()
                },
            }
        )
    )


def _tensors(value: Any, path: str = "") -> Any:
    if isinstance(value, torch.Tensor):
        yield path, value.detach()
    elif hasattr(value, "items"):
        for key, each in value.items():
            yield from _tensors(each, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _tensors(each, f"{path}[{index}]")
