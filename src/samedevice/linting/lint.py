"""Linting: files in, findings out. Nothing is run, torch is not needed, and an unreadable file stops no other."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from typing import Any

from samedevice.config import Config
from samedevice.findings import Culprit, FileError, Finding, Location, Report
from samedevice.linting import silencing, source, wording
from samedevice.linting.devices.analysis import analyse
from samedevice.linting.devices.facts import Conflict, Fact, MoveDiscarded
from samedevice.linting.rule import Rule, rules
from samedevice.linting.selection import select_files
from samedevice.linting.source import Source, SourceError

__all__ = ["lint", "lint_source"]


def lint(paths: Iterable[str | os.PathLike[str]], *, config: Config | None = None) -> Report:
    """Find device faults in source files.

    Args:
        paths: files, and folders whose `.py` files are taken.
        config: what to look for and where; the defaults where it is left out.

    Returns:
        The findings by file, line and column; files that could not be read or parsed are in `errors`.
    """
    config = Config() if config is None else config
    findings: list[Finding] = []
    errors: list[FileError] = []
    for path in select_files(paths, config):
        try:
            data = source.read(path)
            if source.mentions_torch(data):
                findings.extend(lint_source(source.decode(data), str(path), config=config))
        except SourceError as error:
            errors.append(FileError(str(path), str(error)))
        except Exception as error:  # a fault of the linter itself stops no other file
            reason = f"the linter failed here ({type(error).__name__}: {error}); please report it"
            errors.append(FileError(str(path), reason))
    return Report(tuple(findings), "finding" if findings else "ok", errors=tuple(errors))


def lint_source(text: str, filename: str = "<text>", *, config: Config | None = None) -> tuple[Finding, ...]:
    """Find device faults in the text of one file.

    Args:
        text: Python source.
        filename: its name, for locations and per-file settings.
        config: what to look for.

    Returns:
        The findings by line and column.

    Raises:
        SourceError: the text is no Python.
    """
    config = Config() if config is None else config
    parsed = source.parse(text, filename)
    try:
        facts = analyse(parsed.tree)
    except RecursionError:
        raise SourceError("too deeply nested to be followed") from None
    comments = silencing.silencing_comments(text)
    found = [
        finding
        for finding in _findings(facts, parsed)
        if config.wants(finding.code, finding.cause, filename) and not _is_silenced(finding, comments)
    ]
    return tuple(sorted(found, key=_position))


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
    origin = getattr(fact.culprit.value, "origin", None) if isinstance(fact, Conflict) else None
    return id(origin.node) if origin is not None else None


def _finding(rule: Rule[Any], fact: Fact, node: ast.AST, parsed: Source) -> Finding:
    (line, column), (end_line, end_column) = parsed.span(node)
    return Finding(
        code=rule.code,
        cause=rule.slug,
        message=rule.message(fact, parsed),
        location=Location(
            parsed.file,
            line,
            fact.where.function or None,
            column + 1,
            end_line,
            end_column + 1,
            parsed.line(line).strip(),
        ),
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


def _is_silenced(finding: Finding, comments: dict[int, frozenset[str]]) -> bool:
    location = finding.location
    if not comments or location is None:
        return False
    lines = range(location.line, (location.end_line or location.line) + 1)
    return silencing.silenced(comments, lines, finding.code, finding.cause)


def _position(finding: Finding) -> tuple[int, int, str]:
    location = finding.location
    return (location.line, location.column or 0, finding.code) if location else (0, 0, finding.code)
