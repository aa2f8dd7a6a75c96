"""Source files that read as if they had been edited: what a trial run imports instead of what stands on disk.

Nothing is written beside the user's files, so a run that is killed leaves nothing behind, and `__file__`, line numbers
and neighbours are the real ones. A forked process has the overlay; one that multiprocessing starts anew ("spawn",
"forkserver") unpickles it before it imports the program. One that is started by a command reads what stands on disk.

Source: `importlib.machinery.SourceFileLoader`, `get_data` and `path_stats`; runpy.py, which opens files with
`io.open_code`; multiprocessing/spawn.py, `get_preparation_data`; Python 3.10 to 3.14.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import io
import linecache
import multiprocessing.spawn
import os
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from samedevice.linting.source import decode
from samedevice.simulation.patching import Applied, Patch, for_good

__all__ = ["overlaid"]


@contextlib.contextmanager
def overlaid(files: Mapping[str, bytes]) -> Iterator[None]:
    """Within it modules are loaded from `files` where they name them, here and in processes of multiprocessing.

    Args:
        files: what each file is to hold, by its real path.
    """
    patches = [
        *_loading(files),
        Patch(io, "open_code", _opening(files)),
        Patch(multiprocessing.spawn, "get_preparation_data", _telling(files)),
    ]
    with Applied(patches):
        yield


class _Overlay:
    """Puts the overlay over the process that unpickles it."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = dict(files)

    def __reduce__(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return _begin, (self._files,)


def _begin(files: Mapping[str, bytes]) -> None:
    for_good(overlaid(files))


def _telling(files: Mapping[str, bytes]) -> Callable[[str], dict[str, Any]]:
    original = multiprocessing.spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        # Keys that `multiprocessing.spawn.prepare` does not know are ignored.
        return {"samedevice fix": _Overlay(files), **original(name)}

    return get_preparation_data


def _opening(files: Mapping[str, bytes]) -> Callable[[str], IO[bytes]]:
    original = io.open_code

    def open_code(path: str) -> IO[bytes]:
        data = files.get(os.path.realpath(path))
        if data is None:
            return original(path)
        _remember(path, data)
        return io.BytesIO(data)

    return open_code


def _remember(path: str, data: bytes) -> None:
    """Let tracebacks quote what runs: without a time of change the entry is never checked against the disk."""
    text = decode(data).removeprefix("\ufeff")
    linecache.cache[path] = (len(data), None, text.splitlines(keepends=True), path)


def _loading(files: Mapping[str, bytes]) -> list[Patch]:
    loader: Any = importlib.machinery.SourceFileLoader
    get_data, path_stats = loader.get_data, loader.path_stats

    def get_overlaid(self: Any, path: str) -> bytes:
        data = files.get(os.path.realpath(path))
        if data is None:
            return bytes(get_data(self, path))
        _remember(path, data)
        return data

    def stats_unless_overlaid(self: Any, path: str) -> Any:
        if os.path.realpath(path) in files:
            raise OSError("no cached bytecode for a file that is read as edited")
        return path_stats(self, path)

    return [Patch(loader, "get_data", get_overlaid), Patch(loader, "path_stats", stats_unless_overlaid)]
