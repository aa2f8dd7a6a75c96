"""Every tensor that an optimizer keeps beside the parameters: what it is called and where it belongs.

Optimizers are read by their instance dictionaries (`param_groups`, `state`), so that no property of a wrapper is
called; wrappers are looked through. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from samedevice.placing.inside import parts, tensors_inside
from samedevice.placing.module_tensors import instance_attributes, registered_tensors, single_device
from samedevice.placing.state_homes import home_of
from samedevice.trees.path import Path, attribute, item

__all__ = ["OptimizerTensor", "held_parameters", "optimizers_within", "own_tensors", "tables_by_parameter"]

_PARTS = frozenset(instance_attributes(torch.optim.SGD([nn.Parameter(torch.empty(0))])))
"""The attributes of every optimizer: groups, state, defaults, hooks."""


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerTensor:
    """One tensor of an optimizer that is no parameter."""

    path: Path
    tensor: torch.Tensor
    kind: str
    """state, host state or free state (see `state_homes.Home`), group tensor, or attribute."""
    home: torch.device
    """Where it belongs: its own device where nothing says otherwise."""


def optimizers_within(optimizer: Any, name: str) -> Iterator[tuple[Path, Any]]:
    """The optimizer itself and those that it wraps or lists, each once.

    Args:
        optimizer: an optimizer, or a list, tuple or dict of them.
        name: what to call it, e.g. "optimizer".

    Yields:
        Whatever has `param_groups` and `state` of its own or leads to such, with its path.
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
        wrapped = [(path / attribute(key), part) for key, part in _attributes(value) if _leads_to_one(part)]
        if wrapped or _is_one(value):
            yield path, value
        stack += reversed(wrapped)


def _attributes(value: Any) -> list[tuple[str, Any]]:
    return list(instance_attributes(value).items())


def _is_one(value: Any) -> bool:
    return {"param_groups", "state"} <= instance_attributes(value).keys()


def _leads_to_one(value: Any) -> bool:
    if isinstance(value, (list, tuple, dict)):
        return any(_is_one(part) for _, part in parts(value))
    return _is_one(value) or any(_is_one(part) for _, part in _attributes(value))


def held_parameters(path: Path, optimizer: Any) -> Iterator[tuple[Path, torch.Tensor, Mapping[str, Any]]]:
    """The parameters that one optimizer steps on.

    Args:
        path: what to call the optimizer.
        optimizer: one of `optimizers_within`.

    Yields:
        The path to each parameter, the parameter, and its group. A wrapper without groups has those of what it wraps.
    """
    if not _is_one(optimizer):
        for inner, one in optimizers_within(optimizer, str(path)):
            yield from held_parameters(inner, one) if _is_one(one) else ()
        return
    groups = path / attribute("param_groups")
    for number, group in enumerate(instance_attributes(optimizer)["param_groups"]):
        for position, parameter in enumerate(group["params"]):
            yield groups / item(number) / item("params") / item(position), parameter, group


def tables_by_parameter(optimizer: Any) -> list[dict[Any, Any]]:
    """The attributes of an optimizer that are dicts by parameter, as some keep beside `state`.

    Args:
        optimizer: one of `optimizers_within`.

    Returns:
        Them, without `state` itself.
    """
    held = {id(parameter) for _, parameter, _ in held_parameters(Path(""), optimizer)}
    attributes = instance_attributes(optimizer)
    return [value for name, value in attributes.items() if name not in _PARTS and _is_by_parameter(value, held)]


def own_tensors(path: Path, optimizer: Any, names: Mapping[int, str] | None = None) -> Iterator[OptimizerTensor]:
    """State, tensors in the groups, and tensors that are attributes of the optimizer.

    Args:
        path: what to call the optimizer.
        optimizer: one of `optimizers_within`.
        names: the user's name of each parameter by its `id`; without one, the place in `param_groups` is its name.

    Yields:
        The tensors, each with the place where it belongs.
    """
    return _Reader(path, optimizer, names or {}).read()


class _Reader:
    """One optimizer, with what is known of its parameters by their ids."""

    def __init__(self, path: Path, optimizer: Any, names: Mapping[int, str]) -> None:
        held = list(held_parameters(path, optimizer))
        self.path = path
        self.optimizer = optimizer
        self.common = single_device([parameter for _, parameter, _ in held])
        self.groups = {id(parameter): group for _, parameter, group in held}
        self.devices = {id(parameter): parameter.device for _, parameter, _ in held}
        self.names = {id(parameter): str(place) for place, parameter, _ in held}
        self.names |= {**_names_of_groups(optimizer), **names}

    def read(self) -> Iterator[OptimizerTensor]:
        yield from self._group_tensors()
        attributes = instance_attributes(self.optimizer)
        yield from self._table(self.path / attribute("state"), attributes.get("state"))
        for name, value in attributes.items():
            if name in _PARTS or _leads_to_one(value):
                continue
            if _is_by_parameter(value, self.groups):
                yield from self._table(self.path / attribute(name), value)
            else:
                for where, tensor in self._tensors(value, self.path / attribute(name)):
                    yield OptimizerTensor(where, tensor, "attribute", _device_or_own(tensor, self.common))

    def _table(self, path: Path, table: Any) -> Iterator[OptimizerTensor]:
        for key, value in list(dict.items(table)) if isinstance(table, dict) else ():
            number = _id_of(key)
            here = path / item(key)
            if number in self.names:
                here = Path(f"{path}[{self.names[number] if number == id(key) else f'id({self.names[number]})'}]")
            owner = self.devices.get(number) or _device_of_key(key)
            if owner is not None:
                yield from self._beside(here, value, owner, self.groups.get(number, {}))
            else:
                for where, tensor in self._tensors(value, here):
                    # Whose it is nobody says: on the CPU it may be by choice.
                    kind = "free state" if tensor.device.type == "cpu" else "state"
                    yield OptimizerTensor(where, tensor, kind, _device_or_own(tensor, self.common))

    def _beside(
        self, path: Path, value: Any, beside: torch.device, group: Mapping[str, Any]
    ) -> Iterator[OptimizerTensor]:
        """The state of one parameter on `beside`."""
        tensors = list(self._tensors(value, path))
        # A parameter on meta holds no values, and state that followed it there would lose its own.
        if beside.type == "meta":
            yield from (OptimizerTensor(where, tensor, "state", tensor.device) for where, tensor in tensors)
            return
        large = [tensor.device != beside for _, tensor in tensors if tensor.dim() > 0]
        for where, tensor in tensors:
            home = home_of(
                _last_key(where),
                tensor,
                beside,
                optimizer_class=type(self.optimizer),
                group=group,
                others_astray=any(large) if large else None,
            )
            yield OptimizerTensor(where, tensor, home.kind, home.device)

    def _group_tensors(self) -> Iterator[OptimizerTensor]:
        """A tensor `lr` and other 0-dim hyperparameters may be on the CPU; the rest follows the group's parameters."""
        for number, group in enumerate(instance_attributes(self.optimizer).get("param_groups", ())):
            here = self.path / attribute("param_groups") / item(number)
            common = single_device(list(group["params"]))
            for key, value in group.items():
                for where, tensor in self._tensors(value, here / item(key)) if key != "params" else ():
                    stays = tensor.device.type == "cpu" and (tensor.dim() == 0 or key == "lr")
                    home = tensor.device if stays else _device_or_own(tensor, common)
                    yield OptimizerTensor(where, tensor, "group tensor", home)

    def _tensors(self, value: Any, path: Path) -> Iterator[tuple[Path, torch.Tensor]]:
        """The tensors in `value` that are no parameters of the optimizer: those move with their model."""
        return (found for found in tensors_inside(value, path) if id(found[1]) not in self.groups)


def _is_by_parameter(value: Any, held: Container[int]) -> bool:
    return isinstance(value, dict) and any(_id_of(key) in held for key in dict.keys(value))


def _id_of(key: Any) -> int:
    """The id that a key of state stands for: its own, or the number that it is (`state[id(parameter)]`)."""
    return key if type(key) is int else id(key)


def _names_of_groups(optimizer: Any) -> dict[int, str]:
    """The names that `named_parameters()` gave, where the optimizer was made from them (2.6 and later)."""
    return {
        id(parameter): name
        for group in instance_attributes(optimizer).get("param_groups", ())
        for name, parameter in zip(group.get("param_names", ()), group["params"], strict=False)
    }


def _device_of_key(key: Any) -> torch.device | None:
    """Where the state under `key` belongs: a parameter says so itself, a module by its parameters."""
    if isinstance(key, torch.Tensor):
        return key.device
    return single_device([f.tensor for f in registered_tensors(key, "")]) if isinstance(key, nn.Module) else None


def _last_key(path: Path) -> str | None:
    steps = path.steps()
    return steps[-1].key if steps and isinstance(steps[-1].key, str) else None


def _device_or_own(tensor: torch.Tensor, device: torch.device | None) -> torch.device:
    return tensor.device if device is None or device.type == "meta" else device
