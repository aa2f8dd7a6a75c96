"""What is in a module, as PyTorch registers it."""

from __future__ import annotations

from collections.abc import Iterator

from samedevice.linting.devices.values import Either, Module, Tensor

__all__ = ["all_inside", "modules_inside", "registered"]


def registered(module: Module) -> Iterator[Tensor | Module]:
    """What `module.to` moves directly: parameters, buffers and child modules."""
    for value in (*module.attributes.values(), *module.children):
        if isinstance(value, Module) or (isinstance(value, Tensor) and value.kind != "plain" and value.owner is None):
            yield value
        elif isinstance(value, Either):
            yield from value.options


def modules_inside(module: Module) -> Iterator[Module]:
    """A module and all modules in it, each once, however often it is shared."""
    waiting, seen = [module], {id(module)}
    while waiting:
        found = waiting.pop()
        yield found
        for part in registered(found):
            if isinstance(part, Module) and id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)


def all_inside(module: Module) -> set[int]:
    """A module and all modules in it, by id."""
    return {id(part) for part in modules_inside(module)}
