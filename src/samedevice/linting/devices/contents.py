"""What is in a module, as PyTorch registers it."""

from __future__ import annotations

from collections.abc import Iterator

from samedevice.linting.devices.values import Either, Module, Tensor

__all__ = ["all_inside", "registered"]


def registered(module: Module) -> Iterator[Tensor | Module]:
    """What `module.to` moves directly: parameters, buffers and child modules."""
    for value in (*module.attributes.values(), *module.children):
        if isinstance(value, Module) or (isinstance(value, Tensor) and value.kind != "plain" and value.owner is None):
            yield value
        elif isinstance(value, Either):
            yield from value.options


def all_inside(module: Module, seen: set[int] | None = None) -> set[int]:
    """A module and all modules in it, by id."""
    seen = set() if seen is None else seen
    if id(module) not in seen:
        seen.add(id(module))
        for part in registered(module):
            if isinstance(part, Module):
                all_inside(part, seen)
    return seen
