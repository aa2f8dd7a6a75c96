"""Every tensor that an optimizer keeps beside the parameters: what it is called and where it belongs.

Optimizers are read by their instance dictionaries (`param_groups`, `state`), so that no property of a wrapper is
called; wrappers are looked through. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from samedevice.placing.inside import parts, tensors_inside
from samedevice.placing.module_tensors import instance_attributes, registered_tensors, single_device
from samedevice.placing.state_homes import home_of, is_host
from samedevice.trees.path import Path, attribute, item

__all__ = ["OptimizerTensor", "held_parameters", "optimizers_within", "own_tensors"]

_PARTS = frozenset(instance_attributes(torch.optim.SGD([nn.Parameter(torch.empty(0))])))
"""The attributes of every optimizer: groups, state, defaults, hooks."""


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerTensor:
    """One tensor of an optimizer that is no parameter."""

    path: Path
    tensor: torch.Tensor
    kind: str
    """state, host state (belongs on the CPU wherever the parameter is), group tensor, or attribute."""
    home: torch.device
    """Where it belongs: its own device where nothing says otherwise."""


def optimizers_within(optimizer: Any, name: str) -> Iterator[tuple[Path, Any]]:
    """The optimizer itself and those that it wraps or lists, each once.

    Args:
        optimizer: an optimizer, or a list, tuple or dict of them.
        name: what to call it, e.g. "optimizer".

    Yields:
        Whatever has `param_groups` and `state` of its own, with its path.
    """
    seen: set[int] = set()
    stack = [(Path(name), optimizer)]
    while stack:
        path, value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (list, tuple, dict)):
            stack += [(path / step, part) for step, part in reversed(list(parts(value)))]
            continue
        attributes = instance_attributes(value)
        if {"param_groups", "state"} <= attributes.keys():
            yield path, value
        stack += [(path / attribute(key), part) for key, part in attributes.items() if _may_lead_to_one(part)]


def _may_lead_to_one(value: Any) -> bool:
    if isinstance(value, (list, tuple, dict)):
        return any(isinstance(part, torch.optim.Optimizer) for _, part in parts(value))
    return isinstance(value, torch.optim.Optimizer) or {"param_groups", "state"} <= instance_attributes(value).keys()


def held_parameters(path: Path, optimizer: Any) -> Iterator[tuple[Path, torch.Tensor, Mapping[str, Any]]]:
    """The parameters that one optimizer steps on.

    Args:
        path: what to call the optimizer.
        optimizer: one of `optimizers_within`.

    Yields:
        The path to each parameter, the parameter, and its group.
    """
    groups = path / attribute("param_groups")
    for number, group in enumerate(instance_attributes(optimizer)["param_groups"]):
        for position, parameter in enumerate(group["params"]):
            yield groups / item(number) / item("params") / item(position), parameter, group


def own_tensors(path: Path, optimizer: Any, names: Mapping[int, str] | None = None) -> Iterator[OptimizerTensor]:
    """State, tensors in the groups, and tensors that are attributes of the optimizer.

    Args:
        path: what to call the optimizer.
        optimizer: one of `optimizers_within`.
        names: the user's name of each parameter by its `id`; without one, the place in `param_groups` is its name.

    Yields:
        The tensors, each with the place where it belongs.
    """
    held = list(held_parameters(path, optimizer))
    common = single_device([parameter for _, parameter, _ in held])
    called = (
        {id(parameter): str(place) for place, parameter, _ in held} | _names_of_groups(optimizer) | dict(names or {})
    )
    groups = {id(parameter): group for _, parameter, group in held}
    state = instance_attributes(optimizer)["state"]
    for key, value in list(state.items()) if isinstance(state, dict) else ():
        here = Path(f"{path}.state[{called[id(key)]}]") if id(key) in called else path / attribute("state") / item(key)
        yield from _state(here, value, _device_of_key(key) or common, groups.get(id(key), {}), type(optimizer))
    yield from _group_tensors(path, optimizer)
    for key, value in instance_attributes(optimizer).items():
        if key not in _PARTS and not _may_lead_to_one(value):
            for where, tensor in tensors_inside(value, path / attribute(key)):
                if id(tensor) not in groups:
                    yield OptimizerTensor(where, tensor, "attribute", _device_or_own(tensor, common))


def _names_of_groups(optimizer: Any) -> dict[int, str]:
    """The names that `named_parameters()` gave, where the optimizer was made from them (2.6 and later)."""
    return {
        id(parameter): name
        for group in instance_attributes(optimizer)["param_groups"]
        for name, parameter in zip(group.get("param_names", ()), group["params"], strict=False)
    }


def _device_of_key(key: Any) -> torch.device | None:
    """Where the state under `key` belongs: a parameter says so itself, a module by its parameters."""
    if isinstance(key, torch.Tensor):
        return key.device
    return single_device([f.tensor for f in registered_tensors(key, "")]) if isinstance(key, nn.Module) else None


def _state(
    path: Path, value: Any, beside: torch.device | None, group: Mapping[str, Any], optimizer_class: type
) -> Iterator[OptimizerTensor]:
    tensors = list(tensors_inside(value, path))
    # A parameter on meta holds no values, and state that followed it there would lose its own.
    if beside is None or beside.type == "meta":
        yield from (OptimizerTensor(where, tensor, "state", tensor.device) for where, tensor in tensors)
        return
    moved = any(tensor.device != beside and tensor.dim() > 0 for _, tensor in tensors)
    for where, tensor in tensors:
        key = _last_key(where)
        home = home_of(key, tensor, beside, optimizer_class=optimizer_class, group=group, beside_moved=moved)
        kind = "host state" if is_host(key, tensor, optimizer_class, group) else "state"
        yield OptimizerTensor(where, tensor, kind, home)


def _last_key(path: Path) -> str | None:
    steps = path.steps()
    return steps[-1].key if steps and isinstance(steps[-1].key, str) else None


def _group_tensors(path: Path, optimizer: Any) -> Iterator[OptimizerTensor]:
    """A tensor `lr` and other 0-dim hyperparameters may be on the CPU; the rest follows the group's parameters."""
    for number, group in enumerate(instance_attributes(optimizer)["param_groups"]):
        here = path / attribute("param_groups") / item(number)
        common = single_device(list(group["params"]))
        for key, value in group.items():
            for where, tensor in tensors_inside(value, here / item(key)) if key != "params" else ():
                stays = tensor.device.type == "cpu" and (tensor.dim() == 0 or key == "lr")
                yield OptimizerTensor(
                    where, tensor, "group tensor", tensor.device if stays else _device_or_own(tensor, common)
                )


def _device_or_own(tensor: torch.Tensor, device: torch.device | None) -> torch.device:
    return tensor.device if device is None or device.type == "meta" else device
