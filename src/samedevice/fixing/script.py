"""Mending a script by running it: the edit that its device fault asks for, and again, until a run is clean.

Only edits to the script itself are made; a fault whose mend is in another file is left to a person.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samedevice.errors import UsageError
from samedevice.findings import Culprit, Edit, Finding, Fix, Location, Operand, Raised
from samedevice.fixing.edits import Change, apply_edits, encoding_of, write
from samedevice.fixing.files import findings_if_valid
from samedevice.linting.source import SourceError, decode, read

__all__ = ["FixOptions", "FixResult", "fix_script"]

_MOST_RUNS = 20


@dataclass(frozen=True, slots=True)
class FixOptions:
    """A script to mend by running it."""

    script: str
    args: tuple[str, ...] = ()
    simulate: str | None = None
    """DEVICE[:N]; None: the devices that are here."""
    write: bool = True
    """False: only say what would be changed."""
    timeout: float | None = None
    """Seconds for one run; None: no limit."""


@dataclass(frozen=True, slots=True)
class FixResult:
    """How it went. `clean`: the last run ended without a device fault and without an error of its own."""

    clean: bool
    change: Change
    made: tuple[str, ...] = ()
    """The edits that were made, a summary each."""
    left: tuple[Finding, ...] = ()
    """What the last run still found."""
    message: str = ""
    """Why it ended, where it is not clean."""
    written: bool = False


@dataclass(slots=True)
class _Attempt:
    """A text of the script and what a run of it found."""

    text: str
    outcome: str
    findings: tuple[Finding, ...]
    made: tuple[str, ...] = ()
    tried: set[str] = field(default_factory=set)


def fix_script(options: FixOptions) -> FixResult:
    """Run a script, make the edit that its device fault asks for, and run it again, until it is clean or nothing helps.

    Edits are made in a copy beside the script. The script itself is changed only where the mended copy was seen to run
    to its end without a device fault.

    Args:
        options: what to mend and how to run it.

    Returns:
        What was changed, and what is left.

    Raises:
        UsageError: there is no such script, or it is no Python.
    """
    path = Path(options.script)
    try:
        before = decode(read(path))
    except SourceError as error:
        raise UsageError(f"{path}: {error}") from None
    attempt = _run(before, path, options)
    for _ in range(_MOST_RUNS):
        if attempt.outcome != "finding":
            break
        following = _next(attempt, path, options)
        if following is None:
            break
        attempt = following
    return _result(attempt, before, path, options)


def _result(attempt: _Attempt, before: str, path: Path, options: FixOptions) -> FixResult:
    clean = attempt.outcome == "ok"
    change = Change(str(path), before, attempt.text)
    written = clean and options.write and attempt.text != before
    if written:
        write(path, attempt.text)
    return FixResult(clean, change, attempt.made, attempt.findings, _why(attempt), written)


def _why(attempt: _Attempt) -> str:
    if attempt.outcome == "ok":
        return ""
    if attempt.outcome == "error":
        return "the script fails for a reason of its own; `samedevice run` shows it"
    return "no edit that is known helps against what is left"


def _next(attempt: _Attempt, path: Path, options: FixOptions) -> _Attempt | None:
    """The first edit after which the run gets further, or None."""
    for fix in _candidates(attempt, path):
        text = apply_edits(attempt.text, fix.edits)
        if text in attempt.tried or findings_if_valid(text, str(path), None) is None:
            continue
        attempt.tried.add(text)
        following = _run(text, path, options)
        following.tried |= attempt.tried
        following.made = (*attempt.made, fix.summary)
        if following.outcome == "ok" or (following.outcome == "finding" and not _same_fault(attempt, following)):
            return following
    return None


def _same_fault(before: _Attempt, after: _Attempt) -> bool:
    """Whether the run stops at the same fault as before the edit."""

    def shown(attempt: _Attempt) -> list[tuple[str, str | None, str | None, str | None]]:
        return [
            (each.cause, each.operation, each.culprit.name if each.culprit else None, each.location.source)
            for each in attempt.findings
            if each.location is not None
        ]

    return shown(before) == shown(after)


def _candidates(attempt: _Attempt, path: Path) -> Iterator[Fix]:
    """Edits against what the run found: its own first, then the linter's for the same lines, then its others."""
    for finding in attempt.findings:
        if finding.fix is not None and finding.fix.edits and all(_is_in(edit, path) for edit in finding.fix.edits):
            yield finding.fix
    lines = {line for finding in attempt.findings for line in _lines_of(finding)}
    linted = findings_if_valid(attempt.text, str(path), None) or ()
    for near in (True, False):
        for finding in linted:
            fits = bool(lines & set(_lines_of(finding))) is near
            if fits and finding.fix is not None and finding.fix.edits:
                yield finding.fix


def _lines_of(finding: Finding) -> Iterator[int]:
    if finding.location is not None:
        yield finding.location.line
    if finding.culprit is not None and finding.culprit.line is not None:
        yield finding.culprit.line


def _is_in(edit: Edit, path: Path) -> bool:
    return Path(edit.file).name == path.name


def _run(text: str, path: Path, options: FixOptions) -> _Attempt:
    """Run `text` as `samedevice run` does, from a copy beside the script, in a process of its own.

    Each run needs fresh modules, which only a fresh process has.
    """
    with _copy(text, path) as copy, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "samedevice", "run", "--json", str(report)]
        if options.simulate is not None:
            command += ["--simulate", options.simulate]
        try:
            subprocess.run(
                [*command, str(copy), *options.args],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=options.timeout,
                check=False,
            )
            data = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return _Attempt(text, "error", ())
    findings = tuple(_finding(entry, copy.name, path) for entry in data.get("findings", ()))
    return _Attempt(text, str(data.get("outcome", "error")), findings)


@contextlib.contextmanager
def _copy(text: str, path: Path) -> Iterator[Path]:
    """A copy of the script beside it, so that it finds the same neighbours; gone afterwards."""
    descriptor, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f"{path.stem}_mended_", suffix=".py")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode(encoding_of(path)))
        yield Path(name)
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink()


def _finding(entry: Mapping[str, Any], copy: str, path: Path) -> Finding:
    """A finding in a JSON report, its file named as the script is."""
    location, culprit, raised, fix = (entry[key] for key in ("location", "culprit", "raised", "fix"))

    def named(values: Mapping[str, Any]) -> dict[str, Any]:
        file = values["file"]
        return {**values, "file": str(path) if file is not None and Path(file).name == copy else file}

    return Finding(
        **{key: entry[key] for key in ("code", "cause", "severity", "message", "operation", "expected_device")},
        location=Location(**named(location)) if location else None,
        raised=Raised(**raised) if raised else None,
        culprit=Culprit(**_shaped(named(culprit))) if culprit else None,
        operands=tuple(Operand(**_shaped(operand)) for operand in entry["operands"]),
        reasons=tuple(entry["reasons"]),
        fix=Fix(fix["summary"], tuple(Edit(**named(edit)) for edit in fix["edits"]), fix["safe"]) if fix else None,
    )


def _shaped(values: Mapping[str, Any]) -> dict[str, Any]:
    shape = values["shape"]
    return {**values, "shape": None if shape is None else tuple(shape)}
