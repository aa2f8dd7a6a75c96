"""From live objects to placements: what lives where, by the user's names. It judges nothing and changes nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from samedevice.errors import UsageError
from samedevice.findings import Placement
from samedevice.placing.inside import parts, tensors_inside
from samedevice.placing.lengths import are_lengths, has_recurrence
from samedevice.placing.module_tensors import ModuleTensor, instance_attributes, registered_tensors
from samedevice.placing.optimizer_tensors import held_parameters, optimizers_within, own_tensors
from samedevice.placing.plain_tensors import plain_tensors
from samedevice.texts import say
from samedevice.trees.path import Path, attribute, item

__all__ = ["Collection", "collect", "modules_within"]


@dataclass(slots=True)
class Collection:
    """What was found, and the modules that attributes belong to."""

    placements: list[Placement] = field(default_factory=list)
    models: dict[str, nn.Module] = field(default_factory=dict)
    holders: dict[str, ModuleTensor] = field(default_factory=dict)
    """For what `.to()` passes by: one of its tensors, by the path of the attribute that holds it."""


def collect(model: Any, batch: Any, optimizer: Any, criterion: Any) -> Collection:
    """Find every tensor of the four roles.

    Args:
        model: a module, or a list, tuple or dict of modules, or None.
        batch: nested data, or None.
        optimizer: an optimizer, or a list, tuple or dict of them, or None.
        criterion: as `model`; a function has no tensors of its own.

    Returns:
        The placements in that order, the criterion before the optimizer.

    Raises:
        UsageError: `model` holds something that is no module, or `optimizer` no optimizer.
    """
    found = Collection(models=modules_within(model, "model"))
    named: dict[int, str] = {}
    trained: dict[int, tuple[str, torch.Tensor]] = {}
    for role, modules in (("model", found.models), ("criterion", modules_within(criterion, "criterion"))):
        for name, module in modules.items():
            tensors = [*registered_tensors(module, name), *plain_tensors(module, name)]
            found.placements += [placement for one in tensors for placement in _of_module(role, one)]
            found.holders |= {one.holder_path: one for one in tensors if one.holder_path}
            named |= {id(one.tensor): one.path for one in tensors}
            trained |= {
                id(one.tensor): (one.path, one.tensor)
                for one in tensors
                if one.kind == "parameter" and one.tensor.requires_grad
            }
    if isinstance(criterion, functools.partial):
        # functools.partial(F.cross_entropy, weight=…) holds data and nothing that would move it.
        for name, value in criterion.keywords.items():
            for path, tensor in tensors_inside(value, Path("criterion") / attribute("keywords") / item(name)):
                found.placements.append(_placement("criterion", str(path), tensor, "argument"))
    found.placements += _of_batch(batch, found.models)
    found.placements += _of_optimizer(optimizer, named, trained, known=model is not None)
    return found


def modules_within(value: Any, name: str) -> dict[str, nn.Module]:
    """The modules in `value` by name: the value itself, or the entries of a list, tuple or dict.

    Args:
        value: a module, such a container of modules, None, or (as a criterion) any function.
        name: what to call it.

    Returns:
        Name and module, in order.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(value, nn.Module):
        return {name: value}
    if value is None or (name == "criterion" and callable(value)):
        return {}
    if isinstance(value, (list, tuple, dict)):
        below = [(str(Path(name) / step), part) for step, part in parts(value)]
        return {path: module for inner, part in below for path, module in modules_within(part, inner).items()}
    raise UsageError(
        say(
            "{name} is of type {type}; give a module, or a list, tuple or dict of modules",
            name=name,
            type=type(value).__name__,
        )
    )


def _placement(role: str, path: str, tensor: torch.Tensor, kind: str, **more: Any) -> Placement:
    return Placement(role, path, str(tensor.device), _shape(tensor), str(tensor.dtype), kind, **more)


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape; () for nested tensors and lazy parameters, which have none."""
    try:
        return () if tensor.is_nested else tuple(int(size) for size in tensor.shape)
    except RuntimeError:
        return ()


def _of_module(role: str, one: ModuleTensor) -> Iterator[Placement]:
    owner = None if one.owner_device is None else str(one.owner_device)
    yield _placement(role, one.path, one.tensor, one.kind, owner_device=owner, holder=one.holder_path)
    # Only a leaf has a gradient that stays; asking others for it warns.
    if one.kind == "parameter" and one.tensor.is_leaf and (gradient := one.tensor.grad) is not None:
        device = str(one.tensor.device)
        if str(gradient.device) != device:
            yield _placement(role, f"{one.path}.grad", gradient, "gradient", owner_device=device)


def _of_batch(batch: Any, models: Mapping[str, nn.Module]) -> Iterator[Placement]:
    on_cpu_by_right: Callable[[Path, torch.Tensor], bool] = are_lengths if has_recurrence(models.values()) else _never
    for path, tensor in tensors_inside(batch, Path("batch")):
        yield _placement("batch", str(path), tensor, "length" if on_cpu_by_right(path, tensor) else "input")


def _never(path: Path, tensor: torch.Tensor) -> bool:
    return False


def _of_optimizer(
    optimizer: Any, named: Mapping[int, str], trained: Mapping[int, tuple[str, torch.Tensor]], *, known: bool
) -> Iterator[Placement]:
    if optimizer is None:
        return
    unheld = dict(trained)
    seen: set[int] = set()
    optimizers = list(optimizers_within(optimizer, "optimizer"))
    if not optimizers:
        kind = type(optimizer).__name__
        raise UsageError(
            say("optimizer is of type {type}; give an optimizer, or a list, tuple or dict of optimizers", type=kind)
        )
    for path, one in optimizers:
        # What an optimizer keeps inside itself (a helper for its warm-up) may have parameters of its own.
        inner = any(
            str(path).startswith(f"{outer}.") and "param_groups" in instance_attributes(other)
            for outer, other in optimizers
        )
        for place, parameter, _ in held_parameters(path, one):
            unheld.pop(id(parameter), None)
            if known and id(parameter) not in seen and (id(parameter) in named or not inner):
                kind = "held parameter" if id(parameter) in named else "stale parameter"
                yield _placement("optimizer", named.get(id(parameter), str(place)), parameter, kind)
            seen.add(id(parameter))
        for tensor in own_tensors(path, one, named):
            if id(tensor.tensor) not in seen:
                seen.add(id(tensor.tensor))
                yield _placement(
                    "optimizer", str(tensor.path), tensor.tensor, tensor.kind, owner_device=str(tensor.home)
                )
    if known:
        yield from (_placement("optimizer", path, tensor, "unheld parameter") for path, tensor in unheld.values())
