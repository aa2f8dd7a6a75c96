"""From the text of one file to everything that the rules find in it, before settings and comments have their say."""

from __future__ import annotations

import ast
import contextlib
import gc
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samedevice.findings import Culprit, Finding
from samedevice.linting import source, wording
from samedevice.linting.devices.analysis import analyse
from samedevice.linting.devices.facts import Conflict, Fact, MoveDiscarded
from samedevice.linting.devices.neighbours import NEIGHBOURS
from samedevice.linting.lines import position
from samedevice.linting.rule import Rule, rules
from samedevice.linting.smells import smells_in
from samedevice.linting.source import Source, SourceError
from samedevice.linting.time_limit import TimeUp, at_most
from samedevice.texts import say

__all__ = ["Checked", "check"]

_ALLOCATIONS = 500_000
"""So many more objects than before, some hundred megabytes at most, before Python looks for garbage."""
SECONDS = 60.0
"""Of the processor's time that a file may take; a usual one takes a hundredth of one."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a text came to, and what it rests on."""

    findings: tuple[Finding, ...]
    reads: tuple[str, ...]
    """Files and folders that were looked at besides the text itself, whether they are there or not."""


def check(text: str, filename: str, *, faults: bool = True, smells: bool = False, flags: int = 0) -> Checked:
    """Everything that is found in a text.

    Args:
        text: Python source.
        filename: its name, for locations.
        faults: whether to look for device faults.
        smells: whether to look for device smells.
        flags: for the parser, see `source.parse`.

    Returns:
        The findings by line and column, silenced ones among them, and what else was read for their sake.

    Raises:
        SourceError: the text is no Python.
    """
    with _rarely_collected():
        return _check(source.parse(text, filename, flags=flags), faults=faults, smells=smells)


@contextlib.contextmanager
def _rarely_collected() -> Iterator[None]:
    """A tree and its values live until the file is done: to look for garbage among them took a third of the time.

    In the main thread only: the setting is the process's, and two threads would put back one another's.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _ALLOCATIONS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _check(parsed: Source, *, faults: bool, smells: bool) -> Checked:
    path = Path(parsed.file).absolute()
    found: list[Finding] = []
    NEIGHBOURS.read.clear()
    try:
        with at_most(SECONDS):
            if faults:
                found += _findings(analyse(parsed.tree, path if path.exists() else None), parsed)
            if smells:
                found += smells_in(parsed)
    except RecursionError:
        raise SourceError(say("too deeply nested to be followed")) from None
    except TimeUp:
        raise SourceError(say("takes more than {seconds:g} s to follow; not linted", seconds=SECONDS)) from None
    return Checked(tuple(sorted(found, key=position)), tuple(sorted(map(str, NEIGHBOURS.read))))


def _findings(facts: list[Fact], parsed: Source) -> Iterator[Finding]:
    """One finding for each place and for each thing in the wrong place, however often it is used from there."""
    seen: set[tuple[str, int, int]] = set()
    blamed = {id(fact.tensor.origin.node) for fact in facts if isinstance(fact, MoveDiscarded) and fact.tensor.origin}
    for fact in facts:
        rule = next((rule for rule in rules() if isinstance(fact, rule.kind) and rule.claims(fact)), None)
        culprit = _origin(fact)
        if rule is None or culprit in blamed:
            continue
        node = rule.at(fact)
        place = (rule.slug, getattr(node, "lineno", 1), getattr(node, "col_offset", 0))
        if place not in seen:
            seen.add(place)
            if culprit is not None:
                blamed.add(culprit)
            yield _finding(rule, fact, node, parsed)


def _origin(fact: Fact) -> int | None:
    """What identifies the thing in the wrong place: the expression that made it."""
    operand = fact.culprit if isinstance(fact, Conflict) else None
    culprit = operand.model or operand.whole or operand.value if operand is not None else None
    origin = getattr(culprit, "origin", None)
    return id(origin.node) if origin is not None else None


def _finding(rule: Rule[Any], fact: Fact, node: ast.AST, parsed: Source) -> Finding:
    return Finding(
        code=rule.code,
        cause=rule.slug,
        message=rule.message(fact, parsed),
        location=parsed.location(node, fact.where.function or None),
        severity="warning" if isinstance(fact, Conflict) and fact.certainty < fact.certainty.CERTAIN else "error",
        operation=fact.operation if isinstance(fact, Conflict) else None,
        culprit=_culprit(fact, parsed) if isinstance(fact, Conflict) else None,
        expected_device=wording.device_name(fact.other.place) if isinstance(fact, Conflict) else None,
        fix=rule.fix(fact, parsed),
    )


def _culprit(conflict: Conflict, parsed: Source) -> Culprit:
    origin = getattr(conflict.culprit.value, "origin", None)
    line = getattr(getattr(origin, "node", None), "lineno", None)
    return Culprit(
        wording.text_of(conflict.culprit.node, parsed),
        parsed.file,
        line,
        wording.device_name(conflict.culprit.place),
        source=parsed.line(line).strip() if line else None,
    )
