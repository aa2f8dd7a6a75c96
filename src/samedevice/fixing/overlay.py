"""Source files that read as if they had been edited: what a trial run imports instead of what stands on disk.

Nothing is written beside the user's files, so a run that is killed leaves nothing behind, and `__file__`, line numbers
and neighbours are the real ones. Processes that the program starts by exec or spawn read the files as they are on disk.

Source: `importlib.machinery.SourceFileLoader`, `get_data` and `path_stats`, Python 3.10 to 3.14.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import linecache
import os
from collections.abc import Iterator, Mapping
from typing import Any

from samedevice.linting.source import decode

__all__ = ["overlaid"]


@contextlib.contextmanager
def overlaid(files: Mapping[str, bytes]) -> Iterator[None]:
    """Within it modules are loaded from `files` where they name them.

    Args:
        files: what each file is to hold, by its real path.
    """
    loader: Any = importlib.machinery.SourceFileLoader
    # Both are inherited from bases: set on the class itself here, and taken from it again.
    get_data, path_stats = loader.get_data, loader.path_stats
    own = {name: vars(loader).get(name) for name in ("get_data", "path_stats")}

    def get_overlaid(self: Any, path: str) -> bytes:
        data = files.get(os.path.realpath(path))
        if data is None:
            return bytes(get_data(self, path))
        text = decode(data).removeprefix("\ufeff")
        # Without a time of change the entry is never checked against the disk.
        linecache.cache[path] = (len(data), None, text.splitlines(keepends=True), path)
        return data

    def stats_unless_overlaid(self: Any, path: str) -> Any:
        if os.path.realpath(path) in files:
            raise OSError("no cached bytecode for a file that is read as edited")
        return path_stats(self, path)

    loader.get_data, loader.path_stats = get_overlaid, stats_unless_overlaid
    try:
        yield
    finally:
        for name, value in own.items():
            if value is None:
                delattr(loader, name)
            else:
                setattr(loader, name, value)
