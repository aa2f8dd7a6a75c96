"""Linting: files in, findings out. Nothing is run, torch is not needed, and an unreadable file stops no other.

The rules themselves, with the interpreter that they read, are loaded with the first file that has anything to do with
torch and is not in the cache.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from samedevice.config import Config
from samedevice.findings import FileError, Finding, Report
from samedevice.linting import jobs as processes
from samedevice.linting import silencing, source
from samedevice.linting.cache import Cache
from samedevice.linting.lines import position
from samedevice.linting.selection import select_files
from samedevice.linting.source import SourceError
from samedevice.texts import say

__all__ = ["Linted", "lint", "lint_bytes", "lint_file", "lint_source"]


_FILES_PER_JOB = 16
"""Fewer are linted before another process has started."""


@dataclass(frozen=True, slots=True)
class Linted:
    """What linting one file came to."""

    findings: tuple[Finding, ...] = ()
    errors: tuple[FileError, ...] = ()


def lint(
    paths: Iterable[str | os.PathLike[str]],
    *,
    config: Config | None = None,
    jobs: int = 1,
    cache: Cache | None = None,
    force_exclude: bool = False,
) -> Report:
    """Find device faults in source files and notebooks.

    Args:
        paths: files, and folders whose `.py` and `.ipynb` files are taken.
        config: what to look for and where; the defaults where it is left out.
        jobs: how many processes to use.
        cache: where to look up, and keep, what was found in files that have not changed.
        force_exclude: pass by excluded files even where they are named.

    Returns:
        The findings by file, line and column; files that could not be read or parsed are in `errors`.
    """
    config = Config() if config is None else config
    files = list(select_files(paths, config, force_exclude=force_exclude))
    jobs = min(jobs, 1 + len(files) // _FILES_PER_JOB)
    results = processes.mapped(functools.partial(lint_file, config=config, cache=cache), files, jobs, _died)
    findings = tuple(finding for result in results for finding in result.findings)
    errors = tuple(error for result in results for error in result.errors)
    return Report(findings, "finding" if findings else "ok", errors=errors)


def _died(path: Path) -> Linted:
    return Linted(
        errors=(FileError(str(path), say("the process that linted it died; it may need more memory than there is")),)
    )


def lint_file(path: Path, *, config: Config, cache: Cache | None = None) -> Linted:
    """Find device faults in one file; whatever goes wrong with it is in `errors`."""
    try:
        data = source.read(path)
    except SourceError as error:
        return Linted(errors=(FileError(str(path), error.message),))
    return lint_bytes(data, str(path), config=config, cache=cache)


def lint_bytes(data: bytes, filename: str, *, config: Config, cache: Cache | None = None) -> Linted:
    """Find device faults in what a file holds.

    Args:
        data: the bytes of a source file, or of a notebook where `filename` ends in `.ipynb`.
        filename: its name, for locations and per-file settings.
        config: what to look for.
        cache: where to look up, and keep, what was found.

    Returns:
        What was found; whatever goes wrong is in `errors`.
    """
    if not source.mentions_torch(data):
        return Linted()
    try:
        if filename.endswith(".ipynb"):
            return _lint_notebook(source.decode(data), filename, config, cache)
        return Linted(_lint_source(source.decode(data), filename, config, cache))
    except SourceError as error:
        reason = error.message
    except Exception as error:  # a fault of the linter itself stops no other file
        reason = say(
            "the linter failed here ({type}: {error}); please report it", type=type(error).__name__, error=str(error)
        )
    return Linted(errors=(FileError(filename, reason),))


def _lint_notebook(text: str, filename: str, config: Config, cache: Cache | None) -> Linted:
    from samedevice.linting import notebooks

    notebook = notebooks.read(text, filename)
    found = _lint_source(notebook.code, filename, config, cache, flags=notebooks.FLAGS)
    return Linted(tuple(map(notebook.relocated, found)), notebook.errors)


def lint_source(text: str, filename: str = "<text>", *, config: Config | None = None) -> tuple[Finding, ...]:
    """Find device faults in the text of one file.

    Args:
        text: Python source, or a notebook's JSON where `filename` ends in `.ipynb`.
        filename: its name, for locations and per-file settings.
        config: what to look for.

    Returns:
        The findings by line and column.

    Raises:
        SourceError: the text is no Python.
    """
    config = Config() if config is None else config
    if filename.endswith(".ipynb"):
        return _lint_notebook(text, filename, config, None).findings
    return _lint_source(text, filename, config, None)


def _lint_source(
    text: str, filename: str, config: Config, cache: Cache | None, *, flags: int = 0
) -> tuple[Finding, ...]:
    smells = config.wants_smells
    everything = cache.get(text, filename, smells=smells) if cache else None
    if everything is None:
        from samedevice.linting.checking import check

        checked = check(text, filename, smells=smells, flags=flags)
        everything = checked.findings
        if cache:
            cache.put(text, filename, everything, smells=smells, reads=checked.reads)
    wanted = [finding for finding in everything if config.wants(finding.code, finding.cause, filename)]
    comments = silencing.comments_in(text)
    if not comments:
        return tuple(wanted)
    left = [*silencing.silence(wanted, comments), *_unused(comments, wanted, text, filename, config)]
    return tuple(sorted(left, key=position))


def _unused(
    comments: tuple[silencing.Comment, ...], wanted: list[Finding], text: str, filename: str, config: Config
) -> tuple[Finding, ...]:
    """Comments that silence nothing, themselves silenced where a comment says so."""
    if not config.wants(*silencing.UNUSED, filename):
        return ()
    from samedevice.causes.catalogue import NAMES

    names = {code: slug for code, slug in NAMES.items() if code != silencing.UNUSED[0]}
    looked_for = {name.lower() for pair in names.items() if config.wants(*pair, filename) for name in pair}
    known = {name.lower() for pair in names.items() for name in pair}
    lines = source.lines_of(text)
    idle = silencing.unused(comments, wanted, filename, lines, looked_for=looked_for, known=known)
    itself = {name.lower() for name in silencing.UNUSED}
    return silencing.silence(idle, [comment for comment in comments if itself & set(comment.codes)])
