"""Source files beside the one that is linted: found by path as Python would find them, and parsed once.

Nothing is imported or run. What cannot be found, read or parsed is simply not known. Only files of the same package, of
the same folder and of the same project are looked for: what is installed is not.
"""

from __future__ import annotations

import ast
import os
import sys
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final

from samedevice.config import PROJECT_MARKS
from samedevice.linting.source import tree_of

__all__ = ["NEIGHBOURS", "Neighbours"]

_LARGEST = 400_000
"""Bytes of a file that is still read for the sake of another one."""
_KEPT = 4_000_000
"""Bytes of source whose trees are kept; a tree takes some fifty times as much memory."""
_HIGHEST = 5
"""How many folders up the root of a project is looked for."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_ELSEWHERE = frozenset(sys.stdlib_module_names) | {"torch", "numpy"}

_Stamp = tuple[int, int] | None
"""When a file or folder was changed, and its size; None where it is not there."""


class Neighbours(threading.local):
    """What was read of folders and files, as long as they stay as they were.

    Each thread has its own: what one reads is no part of what another's findings rest on.
    """

    def __init__(self) -> None:
        self._trees: OrderedDict[Path, tuple[_Stamp, ast.Module | None, int]] = OrderedDict()
        self._size = 0
        self._names: dict[Path, tuple[_Stamp, frozenset[str]]] = {}
        self._setting: dict[Path, tuple[_Stamp, bool]] = {}
        self.read: set[Path] = set()
        """Files and folders that were looked at, until somebody clears it: what was found rests on them."""

    def find(self, importer: Path, module: str, level: int = 0) -> Path | None:
        """The file that an import means.

        Args:
            importer: the file with the import.
            module: the dotted name; empty in `from . import x`.
            level: how many dots precede it.

        Returns:
            A `.py` file or a package's `__init__.py`, or None where it is none of the same package, folder or project.
        """
        folder = importer.parent
        if level:
            for _ in range(level - 1):
                folder = folder.parent
            return self._below(folder, module.split(".") if module else [])
        first = module.partition(".")[0]
        if first in _ELSEWHERE:
            return None
        found = (self._below(root, module.split(".")) for root in self._roots(folder, first))
        return next((path for path in found if path is not None and path != importer), None)

    def submodule(self, package: Path, name: str) -> Path | None:
        """The module or package `name` inside the package whose `__init__.py` is given."""
        return self._below(package.parent, [name]) if package.name == "__init__.py" else None

    def tree(self, path: Path) -> ast.Module | None:
        """The syntax tree of a file, or None where it cannot be had."""
        self.read.add(path)
        stamp, kept = _stamp(path), self._trees.get(path)
        if kept is not None and kept[0] == stamp:
            self._trees.move_to_end(path)
            return kept[1]
        data = _read(path)
        tree = _parse(data) if data is not None else None
        self._keep(path, (stamp, tree, len(data or b"")))
        return tree

    def sets_default_device(self, path: Path) -> bool:
        """Whether importing a file may set the default device, so that it matters even where no name of it is used."""
        self.read.add(path)
        stamp, kept = _stamp(path), self._setting.get(path)
        if kept is None or kept[0] != stamp:
            kept = self._setting[path] = stamp, b"set_default_" in (_read(path) or b"")
        return kept[1]

    def _keep(self, path: Path, entry: tuple[_Stamp, ast.Module | None, int]) -> None:
        self._size += entry[2] - self._trees.pop(path, (None, None, 0))[2]
        self._trees[path] = entry
        while self._size > _KEPT and len(self._trees) > 1:
            self._size -= self._trees.popitem(last=False)[1][2]

    def _below(self, folder: Path, parts: list[str]) -> Path | None:
        """The module `parts` as seen from `folder`; the package that is `folder` itself where there are none."""
        *parents, last = parts or [""]
        for part in parents:
            if part not in self._names_in(folder):
                return None
            folder = folder / part
        names = self._names_in(folder)
        if last in names or not last:
            inner = folder / last / "__init__.py"
            if "__init__.py" in self._names_in(inner.parent):
                return inner
        return folder / f"{last}.py" if f"{last}.py" in names else None

    def _roots(self, folder: Path, first: str) -> tuple[Path, ...]:
        """The folders from which a module `first` may be imported: that of the package, the script, the project."""
        outermost = self._outermost_package(folder)
        own = outermost.parent if outermost is not None else folder
        inside = (own,) if outermost is None or outermost.name == first else ()
        return (*inside, *self._project(folder))

    def _outermost_package(self, folder: Path) -> Path | None:
        found = None
        while "__init__.py" in self._names_in(folder) and folder.name:
            found, folder = folder, folder.parent
        return found

    def _project(self, folder: Path) -> tuple[Path, ...]:
        """The root of the project around a folder, and its `src`."""
        for _ in range(_HIGHEST):
            if folder.name in _INSTALLED:
                return ()
            if self._names_in(folder) & PROJECT_MARKS:
                return folder, folder / "src"
            folder = folder.parent
        return ()

    def _names_in(self, folder: Path) -> frozenset[str]:
        self.read.add(folder)
        stamp, kept = _stamp(folder), self._names.get(folder)
        if kept is None or kept[0] != stamp:
            kept = self._names[folder] = stamp, _listed(folder)
        return kept[1]


NEIGHBOURS: Final = Neighbours()
"""Those of this thread. Whatever is kept is compared with what is on disk before it is used."""


def _stamp(path: Path) -> _Stamp:
    try:
        status = os.stat(path)  # noqa: PTH116 - in a loop over every import
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _listed(folder: Path) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208 - names are all that is asked for
    except OSError:
        return frozenset()


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return None
    return data if len(data) <= _LARGEST else None


def _parse(data: bytes) -> ast.Module | None:
    try:
        return tree_of(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, LookupError):
        return None
