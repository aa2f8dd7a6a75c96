"""The linter's edits, made in texts and files: each only where the linter then sees that it helped."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from samedevice.config import Config
from samedevice.findings import Edit, Finding, Fix
from samedevice.fixing.edits import Change, apply_edits, write
from samedevice.linting.lint import lint_source
from samedevice.linting.selection import select_files
from samedevice.linting.source import SourceError, decode, mentions_torch, read

__all__ = ["findings_if_valid", "fix_files", "fix_text", "proposed_changes"]

_MOST_ROUNDS = 100


def fix_text(text: str, filename: str = "<text>", *, config: Config | None = None, unsafe: bool = False) -> str:
    """`text` with the linter's edits made, each only where the linter then sees no more than before and not the same.

    Args:
        text: Python source.
        filename: its name, for per-file settings.
        config: what to look for.
        unsafe: also make edits that may change more than the device.

    Returns:
        A text for which this function returns the same text.

    Raises:
        SourceError: the text is no Python.
    """
    findings = lint_source(text, filename, config=config)
    refused: set[tuple[Edit, ...]] = set()
    for _ in range(_MOST_ROUNDS):
        fix = next((fix for fix in _fixes(findings, unsafe=unsafe) if fix.edits not in refused), None)
        if fix is None:
            break
        candidate = apply_edits(text, fix.edits)
        after = findings_if_valid(candidate, filename, config)
        if candidate == text or after is None or not _helps(findings, after):
            refused.add(fix.edits)
        else:
            text, findings = candidate, after
    return text


def _fixes(findings: Iterable[Finding], *, unsafe: bool) -> Iterator[Fix]:
    for finding in findings:
        if finding.fix is not None and finding.fix.edits and (finding.fix.safe or unsafe):
            yield finding.fix


def findings_if_valid(text: str, filename: str, config: Config | None) -> tuple[Finding, ...] | None:
    """The linter's findings in `text`, or None where it is no Python."""
    try:
        return lint_source(text, filename, config=config)
    except SourceError:
        return None


def _helps(before: Sequence[Finding], after: Sequence[Finding]) -> bool:
    """Whether there are fewer findings, or as many and others: behind a mended fault there may be the next one."""
    if len(after) != len(before):
        return len(after) < len(before)
    return {_identity(finding) for finding in after} != {_identity(finding) for finding in before}


def _identity(finding: Finding) -> tuple[str, int, int]:
    location = finding.location
    return (finding.code, location.line, location.column or 0) if location else (finding.code, 0, 0)


def proposed_changes(
    paths: Iterable[str | os.PathLike[str]], *, config: Config | None = None, unsafe: bool = False
) -> Iterator[Change]:
    """What `fix_files` would change; files that cannot be read or parsed are passed by, `lint` names them."""
    config = Config() if config is None else config
    for path in select_files(paths, config):
        with contextlib.suppress(SourceError):
            data = read(path)
            if mentions_torch(data):
                before = decode(data)
                after = fix_text(before, str(path), config=config, unsafe=unsafe)
                if after != before:
                    yield Change(str(path), before, after)


def fix_files(
    paths: Iterable[str | os.PathLike[str]], *, config: Config | None = None, unsafe: bool = False
) -> tuple[Change, ...]:
    """Make the linter's edits in files.

    Args:
        paths: files, and folders whose `.py` files are taken.
        config: what to look for and where.
        unsafe: also make edits that may change more than the device.

    Returns:
        The files that were changed.
    """
    changes = tuple(proposed_changes(paths, config=config, unsafe=unsafe))
    for change in changes:
        write(Path(change.file), change.after)
    return changes
