"""Where a tensor lives, as far as the source tells: the lattice that the interpreter computes with.

A place is a named device, or a cell: "wherever this module was moved", "wherever that argument is". Two cells are never
said to differ; a cell differs from the CPU only where the code shows that it may be elsewhere. Nothing known is `None`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from samedevice.linting.devices.method_tables import ACCELERATORS
from samedevice.texts import say

__all__ = ["CPU", "CUDA", "Cell", "Certainty", "Location", "Place", "difference", "parse_place", "resolve", "unknown"]


class Certainty(IntEnum):
    """How sure it is that two places differ."""

    UNKNOWN = 0
    CONVENTION = 1
    """By convention only: what is given to `forward` lives with the module's parameters."""
    TENSOR = 2
    """By that convention, of what the code treats as a tensor."""
    CERTAIN = 3


@dataclass(frozen=True, slots=True)
class Place:
    """A named device. `index` is a number, None for the current one, or the source of an expression not known here."""

    kind: str
    index: int | str | None = None

    def __str__(self) -> str:
        if self.index is None:
            return self.kind
        return f"{self.kind}:{self.index}" if isinstance(self.index, int) else f"{self.kind}:{{{self.index}}}"


class Cell:
    """A place that the source names without telling it. Cells found to be one place are linked."""

    __slots__ = ("evidence", "guessed", "link", "name")

    def __init__(self, name: str, evidence: Certainty = Certainty.UNKNOWN, *, guessed: bool = False) -> None:
        self.name = name
        self.guessed = guessed
        """Whether anything is there was never said: code that is not seen may have put it anywhere, or nowhere."""
        self.evidence = evidence
        """How sure it is that this place may be another than the CPU."""
        self.link: Place | Cell | None = None

    def __str__(self) -> str:
        return self.name

    def join(self, other: Location) -> None:
        """Record that this cell and `other` are one place."""
        mine, theirs = resolve(self), resolve(other)
        if mine is theirs or not isinstance(mine, Cell):
            return
        if isinstance(theirs, Cell):
            theirs.evidence = max(theirs.evidence, mine.evidence)
        mine.link = theirs


Location = Place | Cell


def unknown(*, guessed: bool = False) -> Cell:
    """Some place, for what must have one: a module whose place is None has no parameters of its own."""
    return Cell(say("an unknown device"), guessed=guessed)


CPU: Final = Place("cpu")
CUDA: Final = Place("cuda")

_TEXT = re.compile(rf"({'|'.join(sorted(ACCELERATORS))}|cpu|meta|xla|privateuseone)(?::(\d+))?\Z")


def parse_place(text: str) -> Place | None:
    """The place that a device string names, or None where it names none."""
    found = _TEXT.match(text)
    if found is None:
        return None
    kind, index = found.groups()
    if kind == "cpu":
        return CPU
    return Place(kind, int(index)) if index else Place(kind)


def resolve(location: Location) -> Location:
    """The place at the end of a cell's links."""
    while isinstance(location, Cell) and location.link is not None:
        location = location.link
    return location


def difference(a: Location | None, b: Location | None, *, current_index: int | None = 0) -> Certainty:
    """How sure it is that `a` and `b` are different devices.

    Args:
        a: a place, or None where nothing is known.
        b: the other one.
        current_index: what a device without an index stands for; None where the program chooses it.

    Returns:
        `UNKNOWN` also where they are the same.
    """
    if a is None or b is None:
        return Certainty.UNKNOWN
    a, b = resolve(a), resolve(b)
    if isinstance(a, Cell):
        return a.evidence if b == CPU else Certainty.UNKNOWN
    if isinstance(b, Cell):
        return b.evidence if a == CPU else Certainty.UNKNOWN
    if "meta" in (a.kind, b.kind):
        return Certainty.UNKNOWN
    if a.kind != b.kind:
        return Certainty.CERTAIN
    return _index_difference(a, b, current_index)


def _index_difference(a: Place, b: Place, current: int | None) -> Certainty:
    left = current if a.index is None else a.index
    right = current if b.index is None else b.index
    if a.index == b.index or left is None or right is None or left == right:
        return Certainty.UNKNOWN
    if isinstance(left, int) and isinstance(right, int):
        return Certainty.CERTAIN
    # An index that is computed differs from the current device wherever it is not 0.
    implicit = (a.index is None or b.index is None) and 0 in (left, right)
    return Certainty.CERTAIN if implicit else Certainty.UNKNOWN
