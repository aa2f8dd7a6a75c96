"""An optimizer's state follows its parameters, wherever these have been moved.

`Module.to` moves parameters and gradients; momentum, averages and step counts stay behind, and the next `step()` fails
or is slow. Where each tensor belongs is for `state_homes.py` to say. Parameters are never touched here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from samedevice.errors import MoveError, UsageError
from samedevice.placing.module_tensors import instance_attributes
from samedevice.placing.move_tensors import move_tensors
from samedevice.placing.optimizer_tensors import OptimizerTensor, optimizers_within, own_tensors, tables_by_parameter
from samedevice.texts import say
from samedevice.trees.containers import KINDS
from samedevice.trees.inside import INSIDE
from samedevice.trees.kinds import OPAQUE
from samedevice.trees.replace import PartError, replace, scan
from samedevice.trees.walk import walk

__all__ = ["sync_optimizer"]


def sync_optimizer(optimizer: Any) -> tuple[str, ...]:
    """Move an optimizer's state to where its parameters are.

        model.to("cuda")                              # parameters move; the state of a resumed optimizer does not
        samedevice.sync_optimizer(optimizer)          # ('optimizer.state[…]["exp_avg"]', …): what was moved

    Adam's `step` stays on the CPU unless `capturable` or `fused` is set, as PyTorch wants it; a tensor `lr` stays as
    well. State on the right device keeps its identity, and so does the dict of each parameter's state.

    Args:
        optimizer: any optimizer, of `torch.optim` or not, a wrapper around one, or a list, tuple or dict of optimizers.

    Returns:
        The names of the tensors that were moved; empty where all was in place.

    Raises:
        MoveError: a tensor cannot be moved, e.g. one on meta, or for want of memory; the optimizer is as it was.
        UsageError: there is no optimizer in `optimizer`.
    """
    found = list(optimizers_within(optimizer, "optimizer"))
    if not found:
        raise UsageError(say("sync_optimizer takes an optimizer, not {type}", type=type(optimizer).__name__))
    slots = [slot for _, one in found for slot in _slots(one)]
    tree = scan([mapping[key] for mapping, key in slots])
    within_reach = set(map(id, tree.leaves))
    astray = [
        one for path, each in found for one in own_tensors(path, each)
        if one.tensor.device != one.home and id(one.tensor) in within_reach
    ]  # fmt: skip
    # Nothing is changed until all is ready.
    for (mapping, key), new in zip(slots, replace(tree, _move(astray)), strict=True):
        _put(mapping, key, new)
    return tuple(dict.fromkeys(str(one.path) for one in astray))


def _slots(optimizer: Any) -> Iterator[tuple[dict[Any, Any], Any]]:
    """Every place of an optimizer that may hold a tensor which is no parameter, as a dict and a key.

    Objects in it that `trees` does not open (projectors, preconditioners) belong to the optimizer and are changed in
    place: their attributes are places of their own.
    """
    attributes = instance_attributes(optimizer)
    tables = [attributes.get("state"), *attributes.get("param_groups", ()), *tables_by_parameter(optimizer)]
    for table in tables:
        if isinstance(table, dict):
            yield from ((table, key) for key in table if key != "params")
            for key, value in table.items():
                for _, part in walk(value, kinds=INSIDE) if key != "params" else ():
                    if KINDS[type(part)] is OPAQUE:
                        yield from ((instance_attributes(part), name) for name in instance_attributes(part))


def _move(astray: Sequence[OptimizerTensor]) -> dict[int, torch.Tensor]:
    """The new tensors by the ids of the old ones. Views of one memory stay views of one memory."""
    moved: dict[int, torch.Tensor] = {}
    by_home: dict[torch.device, list[torch.Tensor]] = {}
    for one in astray:
        by_home.setdefault(one.home, []).append(one.tensor)
    try:
        with torch.no_grad():
            for home, tensors in by_home.items():
                move_tensors([tensor for tensor in tensors if type(tensor) is torch.Tensor], home, False, moved, {})
                for tensor in tensors:
                    if type(tensor) is not torch.Tensor:
                        moved[id(tensor)] = _elsewhere(tensor, home)
    except PartError as error:
        raise _move_error(next(one for one in astray if one.tensor is error.part), error.__cause__) from error.__cause__
    return moved


def _elsewhere(tensor: torch.Tensor, home: torch.device) -> torch.Tensor:
    """A subclass moves by its own `to`; a parameter stays as it is, and a new one stands for it."""
    try:
        moved = tensor.detach().to(home)
        return torch.nn.Parameter(moved, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else moved
    except Exception as error:
        raise PartError(tensor) from error


def _move_error(one: OptimizerTensor, cause: BaseException | None) -> MoveError:
    return MoveError(
        say(
            "{name} could not be moved from {device} to {home}, and nothing was changed. {type}: {cause}",
            name=str(one.path),
            device=str(one.tensor.device),
            home=str(one.home),
            type=type(cause).__name__,
            cause=str(cause),
        )
    )


def _put(mapping: dict[Any, Any], key: Any, new: Any) -> None:
    """Replace an entry. The dict of one parameter's state stays the same object: others may refer to it."""
    old = mapping[key]
    if new is old:
        return
    if isinstance(old, dict):
        old.update((name, value) for name, value in new.items() if value is not old[name])
    else:
        mapping[key] = new
