"""Which files to lint: paths and folders, without what is excluded and what git ignores."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from samedevice.config import Config
from samedevice.linting import gitignore

__all__ = ["select_files"]

_SUFFIXES = (".py", ".ipynb")


def select_files(
    paths: Iterable[str | os.PathLike[str]], config: Config, *, force_exclude: bool = False
) -> Iterator[Path]:
    """The files to lint: each given file, and the `.py` and `.ipynb` files below each given folder, sorted, each once.

    Args:
        paths: files and folders.
        config: what to exclude; a file that is given by name is linted all the same.
        force_exclude: pass by an excluded file even where it is given by name, as a commit hook gives it.

    Yields:
        Paths as given, joined with what was found below. What cannot be read is among them: folders that cannot be
        opened, links to nothing.
    """
    seen: set[str] = set()
    for given in paths:
        path = Path(given)
        if force_exclude and config.excludes(path):
            continue
        for file in _below(path, config) if path.is_dir() else [path]:
            identity = os.path.realpath(file)
            if identity not in seen:
                seen.add(identity)
                yield file


def _below(folder: Path, config: Config) -> Iterator[Path]:
    return _walk(folder, config, gitignore.inherited(folder.absolute()))


def _walk(folder: Path, config: Config, inherited: tuple[gitignore.Pattern, ...]) -> Iterator[Path]:
    absolute = folder.absolute()
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        yield folder
        return
    names = {entry.name for entry in entries}
    # A checkout inside a checkout has its own files; those of the outer one say nothing about them.
    patterns = gitignore.inherited(absolute) if ".git" in names else inherited
    if ".gitignore" in names:
        patterns += gitignore.patterns_in(absolute)
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if not is_folder and (not entry.name.endswith(_SUFFIXES) or _is_linked_folder(entry)):
            continue
        path = folder / entry.name
        if config.excludes(path) or gitignore.is_ignored(patterns, absolute / entry.name, is_folder=is_folder):
            continue
        if is_folder:
            yield from _walk(path, config, patterns)
        else:
            yield path


def _is_linked_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a link to a folder; these are not followed, for they may lead in circles."""
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False
