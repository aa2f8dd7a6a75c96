"""How rules speak of places, tensors and lines, and how a fix names a device."""

from __future__ import annotations

import ast

from samedevice.linting.devices.facts import Conflict
from samedevice.linting.devices.places import CPU, Location, Place, resolve
from samedevice.linting.edits import needs_parentheses
from samedevice.linting.lines import line
from samedevice.linting.source import Source
from samedevice.texts import say

__all__ = [
    "device_name",
    "here",
    "line",
    "line_of",
    "place_name",
    "text_of",
    "text_with",
    "there",
]

_LONGEST = 60


def text_of(node: ast.AST, source: Source) -> str:
    """The source of an expression on one line, shortened where it is long."""
    if not isinstance(node, ast.expr):
        return "it"
    text = " ".join(source.segment(node).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def text_with(suffix: str, node: ast.expr, source: Source) -> str:
    """An expression with what is put after it, as `edits.append` writes it."""
    text = text_of(node, source)
    return (f"({text})" if needs_parentheses(node) else text) + suffix


def place_name(place: Location | None) -> str:
    """A place as a reader says it."""
    if place is None:
        return _UNKNOWN
    found = resolve(place)
    if isinstance(found, Place):
        return _THE_CPU if found == CPU else str(found)
    return found.name


_UNKNOWN = say("an unknown device")
_THE_CPU = say("the CPU")


def device_name(place: Location | None) -> str | None:
    """A place as PyTorch writes it, for reports; None where its name is not known."""
    found = None if place is None else resolve(place)
    return str(found) if isinstance(found, Place) else None


def here(conflict: Conflict) -> str:
    """Where the culprit is."""
    return place_name(conflict.culprit.place)


def there(conflict: Conflict) -> str:
    """Where the other operand is."""
    return place_name(conflict.other.place)


def line_of(node: ast.AST | None) -> int:
    """The line of a node, 0 where it has none."""
    line: int = getattr(node, "lineno", 0)
    return line
