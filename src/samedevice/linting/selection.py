"""Which files to lint: paths and folders, without what is excluded and what git ignores."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from samedevice.config import Config

__all__ = ["select_files"]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A line of a .gitignore file."""

    folder: str
    expression: re.Pattern[str]
    negated: bool
    folders_only: bool
    anchored: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Whether the line speaks of `path`, an absolute path below `folder`."""
        if self.folders_only and not is_folder:
            return False
        if not path.startswith(self.folder + os.sep):
            return False
        relative = path[len(self.folder) + 1 :].replace(os.sep, "/")
        return self.expression.match(relative if self.anchored else relative.rpartition("/")[2]) is not None


def select_files(paths: Iterable[str | os.PathLike[str]], config: Config) -> Iterator[Path]:
    """The files to lint: each given file, and the `.py` files below each given folder, sorted, each once.

    Args:
        paths: files and folders.
        config: what to exclude; a file that is given by name is linted all the same.

    Yields:
        Paths as given, joined with what was found below.
    """
    seen: set[str] = set()
    for given in paths:
        path = Path(given)
        found = _below(path, config) if path.is_dir() else [path]
        for file in found:
            identity = os.path.realpath(file)
            if identity not in seen:
                seen.add(identity)
                yield file


def _below(folder: Path, config: Config) -> Iterator[Path]:
    patterns = _inherited(folder)
    yield from _walk(folder, config, patterns)


def _walk(folder: Path, config: Config, inherited: tuple[_Pattern, ...]) -> Iterator[Path]:
    patterns = (*inherited, *_patterns(folder))
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = folder / entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if not is_folder and not (entry.name.endswith(".py") and entry.is_file()):
            continue
        if config.excludes(path) or _ignored(patterns, str(path.absolute()), is_folder=is_folder):
            continue
        if is_folder:
            yield from _walk(path, config, patterns)
        else:
            yield path


def _inherited(folder: Path) -> tuple[_Pattern, ...]:
    """The patterns of the folders above, up to the root of the git checkout."""
    absolute = folder.absolute()
    above: list[Path] = []
    for parent in (absolute, *absolute.parents):
        if parent != absolute:
            above.append(parent)
        if (parent / ".git").exists():
            return tuple(pattern for part in reversed(above) for pattern in _patterns(part))
    return ()


def _patterns(folder: Path) -> tuple[_Pattern, ...]:
    try:
        text = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    lines = (line.rstrip() for line in text.splitlines())
    root = str(folder.absolute())
    return tuple(_pattern(line, root) for line in lines if line and not line.startswith("#"))


def _pattern(line: str, folder: str) -> _Pattern:
    negated = line.startswith("!")
    line = line[1:] if negated else line
    folders_only = line.endswith("/")
    line = line.rstrip("/")
    anchored = "/" in line
    return _Pattern(folder, _expression(line.lstrip("/")), negated, folders_only, anchored)


def _expression(line: str) -> re.Pattern[str]:
    """A git pattern as a regular expression; `*` stops at a slash and `**` does not."""
    parts = re.split(r"(\*\*/|/\*\*|\*|\?)", line)
    known = {"**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*", "?": "[^/]"}
    if "[" in line:
        return re.compile(translate(line))
    return re.compile("".join(known.get(part) or re.escape(part) for part in parts) + r"\Z")


def _ignored(patterns: tuple[_Pattern, ...], path: str, *, is_folder: bool) -> bool:
    """Git's rule: the last pattern that matches decides."""
    for pattern in reversed(patterns):
        if pattern.matches(path, is_folder=is_folder):
            return not pattern.negated
    return False
