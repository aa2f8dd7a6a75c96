"""What no `.to()` will ever move: the tensors and modules that a module holds without having registered them.

They are plain tensor attributes, whatever lies in plain lists, tuples, dicts and sets, and the fields of helper objects
(distributions, caches, samplers …). No property and no method of the user's is called, and nothing is changed.

Not looked into: functions, lambdas and partials; classes; optimizers, loaders and datasets; an attribute that leads
back to the whole model through an object, which is then the model's owner (a trainer) and not its part.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from samedevice.placing.inside import is_object, parts
from samedevice.placing.module_tensors import (
    ModuleTensor,
    child_step,
    instance_attributes,
    own_parameters,
    registered_tensors,
    single_device,
    submodules,
)
from samedevice.trees.path import Path, attribute

__all__ = ["plain_tensors"]

MOST_OBJECTS = 20_000
"""An attribute that leads to more objects than this is a module's surroundings, not its part."""

_INTERNAL = frozenset([*vars(nn.Module()), "_hf_hook", "_old_forward"])
"""What every module keeps in its instance dictionary, whatever the version of torch: parameters, hooks, `training` …;
and what accelerate adds to those that it dispatches (1.15): its hook holds the weights that were taken out."""
_RECOMPUTED = ("_orig", "_g", "_v", "_bar")
"""Names under which `weight_norm`, `spectral_norm` and pruning keep what each forward makes the attribute from."""


def plain_tensors(root: nn.Module, name: str) -> list[ModuleTensor]:
    """The tensors that `root.to()` passes by, each once.

    Args:
        root: the module.
        name: what to call it, e.g. "model".

    Returns:
        The tensors. Their kinds: plain attribute, container tensor, container parameter, helper tensor and helper
        parameter; "self-moved attribute" where the class has an `_apply` of its own, which may move it.
    """
    return list(_Search(root, name).run())


class _Search:
    """One search. It remembers what it has seen, so that shared objects count once and cycles end."""

    def __init__(self, root: nn.Module, name: str) -> None:
        self.root = root
        self.modules = list(submodules(root, name))
        # By id, and held: a part that is made when asked for must not leave its id to the next.
        self.seen: dict[int, Any] = {id(module): module for _, module in self.modules}
        self.seen |= {id(found.tensor): found.tensor for found in registered_tensors(root, name)}
        self.parents = {
            id(child): module
            for _, module in reversed(self.modules)
            for child in instance_attributes(module).get("_modules", {}).values()
        }

    def run(self) -> Iterator[ModuleTensor]:
        for path, module in self.modules:
            for name, value in _plain_attributes(module):
                yield from self._held(module, name, path / attribute(name), value)

    def _held(self, holder: nn.Module, name: str, start: Path, value: Any) -> list[ModuleTensor]:
        """What one attribute leads to; nothing where that is the model's owner."""
        found: list[ModuleTensor] = []
        around = functools.cache(lambda: self._device_around(holder))
        stack = [(start, value, "plain")]
        steps = 0
        while stack:
            steps += 1
            path, value, via = stack.pop()
            if steps > MOST_OBJECTS or (value is self.root and via == "helper"):
                return []
            if id(value) in self.seen:
                continue
            self.seen[id(value)] = value
            if isinstance(value, torch.Tensor):
                kind = _kind(value, via, holder)
                found.append(ModuleTensor(str(path), value, kind, holder, name, str(start), around()))
            else:
                stack += reversed(list(_below(path, value, via)))
        return found

    def _device_around(self, module: nn.Module | None) -> torch.device | None:
        """The one device of the module's own parameters, of all below it, or of the nearest module around it."""
        while module is not None:
            below = [found.tensor for found in registered_tensors(module, "")]
            device = single_device(own_parameters(module)) or single_device(below)
            if device is not None:
                return device
            module = self.parents.get(id(module))
        return None


def _plain_attributes(module: nn.Module) -> Iterator[tuple[str, Any]]:
    attributes = instance_attributes(module)
    parameters = attributes.get("_parameters", {})
    for name, value in list(attributes.items()):
        if name not in _INTERNAL and not any(name + suffix in parameters for suffix in _RECOMPUTED):
            yield name, value


def _kind(tensor: torch.Tensor, via: str, holder: nn.Module) -> str:
    # Metrics that carry their state along have an `_apply` of their own; nn.RNN's only refreshes its list of weights.
    if not getattr(type(holder)._apply, "__module__", "").startswith("torch.nn."):
        return "self-moved attribute"
    if via == "plain":
        return "plain attribute"
    return f"{via} {'parameter' if isinstance(tensor, nn.Parameter) else 'tensor'}"


def _below(path: Path, value: Any, via: str) -> Iterator[tuple[Path, Any, str]]:
    """What lies one step below `value`: its path, itself, and what the way to it leads through."""
    if isinstance(value, nn.Module):
        inside = "helper" if via == "plain" else via
        for table in ("_parameters", "_buffers", "_modules"):
            for key, child in instance_attributes(value).get(table, {}).items():
                yield path / child_step(value, key), child, inside
        yield from ((path / attribute(name), child, inside) for name, child in _plain_attributes(value))
    else:
        inside = "helper" if via == "helper" or is_object(value) else "container"
        yield from ((path / step, part, inside) for step, part in parts(value))
