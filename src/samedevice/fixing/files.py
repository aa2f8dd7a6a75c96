"""The linter's edits, made in texts and files: each only where the linter then sees that it helped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from samedevice.config import Config
from samedevice.errors import UsageError
from samedevice.findings import Edit, FileError, Finding, Fix
from samedevice.fixing.edits import Change, apply_edits, write_all
from samedevice.linting import notebooks
from samedevice.linting.lint import lint_source
from samedevice.linting.selection import select_files
from samedevice.linting.source import SourceError, decode, encoding_of, mentions_torch, read
from samedevice.texts import say

__all__ = ["findings_if_valid", "fix_files", "fix_text", "fixed_bytes", "proposed_changes"]

_Findings = tuple[Finding, ...]


def fix_text(text: str, filename: str = "<text>", *, config: Config | None = None, unsafe: bool = False) -> str:
    """`text` with the linter's edits made, each only where the linter then sees no more than before and not the same.

    Args:
        text: Python source, or a notebook's JSON where `filename` ends in `.ipynb`.
        filename: its name, for per-file settings.
        config: what to look for.
        unsafe: also make edits that may change more than the device.

    Returns:
        A text for which this function returns the same text.

    Raises:
        SourceError: the text is no Python.
    """
    findings = lint_source(text, filename, config=config)
    seen = {text}
    refused: set[tuple[Edit, ...]] = set()
    while fixes := [fix for fix in _fixes(findings, unsafe=unsafe) if fix.edits not in refused]:
        for group in _groups(fixes):
            candidate = _applied(text, group, filename)
            after = findings_if_valid(candidate, filename, config) if candidate not in seen else None
            if after is not None and _helps(findings, after, len(group)):
                seen.add(candidate)
                text, findings = candidate, after
                break
            refused.update(fix.edits for fix in group if len(group) == 1)
    return text


def _groups(fixes: list[Fix]) -> Iterator[list[Fix]]:
    """All at once, since every try has its price; where that does not help, one by one."""
    if len(fixes) > 1:
        yield fixes
    yield from ([fix] for fix in fixes)


def _fixes(findings: Iterable[Finding], *, unsafe: bool) -> Iterator[Fix]:
    """The fixes that may be made, none twice, and of those that overlap the first."""
    taken: set[tuple[int | None, int]] = set()
    for finding in findings:
        fix = finding.fix
        if fix is not None and fix.edits and (fix.safe or unsafe):
            lines = {(edit.cell, line) for edit in fix.edits for line in range(edit.line, edit.end_line + 1)}
            if taken.isdisjoint(lines):
                taken |= lines
                yield fix


def _applied(text: str, fixes: Iterable[Fix], filename: str) -> str:
    edits = [edit for fix in fixes for edit in fix.edits]
    if not filename.endswith(".ipynb"):
        return apply_edits(text, edits)
    sources = notebooks.cell_sources(text)
    cells = {edit.cell for edit in edits if edit.cell is not None}
    new = {cell: apply_edits(sources[cell], [edit for edit in edits if edit.cell == cell]) for cell in cells}
    return notebooks.with_sources(text, new)


def findings_if_valid(text: str, filename: str, config: Config | None) -> _Findings | None:
    """The linter's findings in `text`, or None where it is no Python."""
    try:
        return lint_source(text, filename, config=config)
    except SourceError:
        return None


def _helps(before: Sequence[Finding], after: Sequence[Finding], fixes: int) -> bool:
    """Whether each fix took a finding away; or one led to as many and others: behind a fault may be the next one."""
    if len(after) != len(before) or fixes > 1:
        return len(after) <= len(before) - fixes
    return {_identity(finding) for finding in after} != {_identity(finding) for finding in before}


def _identity(finding: Finding) -> tuple[str, int, int, int]:
    at = finding.location
    return (finding.code, at.cell or 0, at.line, at.column or 0) if at else (finding.code, 0, 0, 0)


def proposed_changes(
    paths: Iterable[str | os.PathLike[str]],
    *,
    config: Config | None = None,
    unsafe: bool = False,
    errors: list[FileError] | None = None,
) -> Iterator[Change]:
    """What `fix_files` would change.

    Args:
        paths: files, and folders whose `.py` and `.ipynb` files are taken.
        config: what to look for and where.
        unsafe: also make edits that may change more than the device.
        errors: gets the files that could be linted and not mended. Those that cannot be read or parsed are passed by:
            `lint` names them.

    Yields:
        The changes, file by file.
    """
    config = Config() if config is None else config
    for path in select_files(paths, config):
        try:
            change = fixed_bytes(read(path), str(path), config=config, unsafe=unsafe)
        except SourceError:
            continue
        except Exception as error:  # a fault of the linter or of a rule itself stops no other file
            _note(
                errors,
                path,
                say("not mended ({type}: {error}); please report it", type=type(error).__name__, error=str(error)),
            )
            continue
        if change.after != change.before:
            yield change


def fixed_bytes(data: bytes, filename: str, *, config: Config | None = None, unsafe: bool = False) -> Change:
    """The change that mends what a file holds; the text before and after are the same where there is nothing to mend.

    Args:
        data: the bytes of a source file or notebook.
        filename: its name.
        config: what to look for.
        unsafe: also make edits that may change more than the device.

    Raises:
        SourceError: it cannot be parsed, or its encoding would not give back the same bytes.
    """
    before, encoding = decode(data), encoding_of(data)
    if not mentions_torch(data):
        return Change(filename, before, before, encoding)
    after = fix_text(before, filename, config=config, unsafe=unsafe)
    if after != before and before.encode(encoding) != data:
        raise SourceError(say("cannot be written back as {encoding} without other changes", encoding=encoding))
    return Change(filename, before, after, encoding)


def fix_files(
    paths: Iterable[str | os.PathLike[str]],
    *,
    config: Config | None = None,
    unsafe: bool = False,
    errors: list[FileError] | None = None,
) -> tuple[Change, ...]:
    """Make the linter's edits in files.

    Args:
        paths: files, and folders whose `.py` and `.ipynb` files are taken.
        config: what to look for and where.
        unsafe: also make edits that may change more than the device.
        errors: gets the files that could not be mended or written; the others are.

    Returns:
        The files that were changed.
    """
    made: list[Change] = []
    for change in proposed_changes(paths, config=config, unsafe=unsafe, errors=errors):
        try:
            write_all([change])
        except (UsageError, OSError) as error:
            _note(
                errors, change.file, say("not mended: {reason}", reason=getattr(error, "strerror", None) or str(error))
            )
        else:
            made.append(change)
    return tuple(made)


def _note(errors: list[FileError] | None, file: str | os.PathLike[str], message: str) -> None:
    if errors is not None:
        errors.append(FileError(os.fspath(file), message))
