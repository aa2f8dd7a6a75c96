"""The edits that led to the mended files, as they stand in those: what a later edit replaced is not told.

Compares texts only; runs and edits nothing.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from samedevice.findings import Edit, Fix, named_from
from samedevice.fixing.correspondence import corresponding
from samedevice.fixing.project import Project

__all__ = ["Made", "made_of"]


@dataclass(frozen=True, slots=True)
class Made:
    """An edit that was made."""

    summary: str
    places: tuple[tuple[str, int], ...]
    """The files as seen from the current folder, with the line in each after all edits."""
    safe: bool = True
    """False where it may change what the program computes, or where it runs."""


def made_of(steps: Iterable[tuple[Fix, Project]], last: Project) -> tuple[Made, ...]:
    """The edits whose lines are in the files in the end, by place.

    Args:
        steps: the edits in the order in which they were made, each with the files right after it.
        last: the files after all of them.

    Returns:
        Those that left a line of theirs. Where a later edit replaced one that is not marked as safe, it is not either.
    """
    found: list[Made] = []
    unsafe: set[tuple[str, int]] = set()
    for fix, then in steps:
        alive, replaced = _places(fix.edits, then, last)
        safe = fix.safe and unsafe.isdisjoint(alive)
        if alive:
            found.append(Made(fix.summary, tuple(sorted(_first_lines(alive))), safe))
        if not safe:
            unsafe |= replaced
    return tuple(sorted((_named(each) for each in found), key=lambda each: each.places))


def _first_lines(places: Iterable[tuple[str, int]]) -> Iterable[tuple[str, int]]:
    """The first line in each file."""
    return dict(sorted(places, key=lambda place: -place[1])).items()


def _named(made: Made) -> Made:
    here = str(Path.cwd())
    return replace(made, places=tuple((named_from(here, file), line) for file, line in made.places))


def _places(edits: Sequence[Edit], then: Project, last: Project) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """The lines in `last` that `edits` wrote, and those that stand where others that they wrote stood."""
    alive, replaced = set[tuple[str, int]](), set[tuple[str, int]]()
    for file, number in _written(edits):
        text, final = then.both(file)[1], last.both(file)[1]
        line = min(number, len(text.splitlines()))
        lines = corresponding(text, final, line)
        same = len(lines) == 1 and text.splitlines()[line - 1] == final.splitlines()[lines.start - 1]
        (alive if same else replaced).update((file, each) for each in lines)
    return alive, replaced


def _written(edits: Sequence[Edit]) -> list[tuple[str, int]]:
    """The lines that `edits` wrote, in the text right after them; where they only take lines away, the next ones."""
    starts = [(os.path.realpath(edit.file), _start(edit, edits)) for edit in edits]
    found = [
        (file, start + offset) for (file, start), edit in zip(starts, edits, strict=True) for offset in _new_lines(edit)
    ]
    return found or starts


def _start(edit: Edit, edits: Sequence[Edit]) -> int:
    """The line of `edit` when all of `edits` are made."""
    real = os.path.realpath(edit.file)
    above = [each for each in edits if os.path.realpath(each.file) == real and each.line < edit.line]
    return edit.line + sum(_length(each.new) - _length(each.old) for each in above)


def _new_lines(edit: Edit) -> list[int]:
    """Which lines of its new text are not in the old one, from 0."""
    old, new = edit.old.split("\n"), edit.new.split("\n") if edit.new else []
    opcodes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [offset for kind, _, _, first, end in opcodes if kind != "equal" for offset in range(first, end)]


def _length(text: str) -> int:
    return text.count("\n") + 1 if text else 0
