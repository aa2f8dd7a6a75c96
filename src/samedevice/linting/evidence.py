"""Questions that several rules ask of a conflict."""

from __future__ import annotations

import ast

from samedevice.linting.devices.facts import Conflict
from samedevice.linting.devices.places import CPU, Certainty, Place, resolve
from samedevice.linting.devices.values import Held, Origin, Tensor

__all__ = [
    "held_of",
    "is_certain",
    "is_tensor",
    "kept",
    "made_here",
    "on_accelerator",
    "origin_node",
    "origin_of",
    "where_held",
    "where_made",
]


def is_tensor(conflict: Conflict) -> bool:
    """Whether the culprit is a tensor and no module, generator or optimizer."""
    return isinstance(conflict.culprit.value, Tensor)


def origin_of(conflict: Conflict) -> Origin | None:
    """What put the culprit where it is."""
    origin = getattr(conflict.culprit.value, "origin", None)
    return origin if isinstance(origin, Origin) else None


def held_of(conflict: Conflict) -> Held | None:
    """What keeps the culprit."""
    held = getattr(conflict.culprit.value, "held", None)
    return held if isinstance(held, Held) else None


def kept(conflict: Conflict) -> Held:
    """What keeps the culprit, for rules that claim only what is kept."""
    held = held_of(conflict)
    assert held is not None
    return held


def where_held(conflict: Conflict) -> ast.AST:
    """The assignment that keeps the culprit; where it is used if another file keeps it."""
    held = held_of(conflict)
    return conflict.node if held is None or held.foreign else held.node


def made_here(conflict: Conflict) -> bool:
    """Whether the culprit was made in the function in which it is used."""
    origin = origin_of(conflict)
    return origin is not None and origin.function == conflict.where.function


def where_made(conflict: Conflict) -> ast.AST:
    """The expression that made the culprit where that is in the same function, else where it is used."""
    origin = origin_of(conflict)
    return origin.node if origin is not None and made_here(conflict) else conflict.node


def origin_node(conflict: Conflict) -> ast.AST:
    """The expression that put the culprit where it is, in whatever function: for rules that claim only what has one."""
    origin = origin_of(conflict)
    assert origin is not None
    return origin.node


def is_certain(conflict: Conflict) -> bool:
    """Whether the conflict holds by what the code does, not only by convention."""
    return conflict.certainty is Certainty.CERTAIN


def on_accelerator(conflict: Conflict) -> bool:
    """Whether the culprit is on a named device that is not the CPU."""
    place = conflict.culprit.place
    found = resolve(place) if place is not None else None
    return isinstance(found, Place) and found != CPU
