"""Names for groups of paths: when everything under `batch["targets"]` is astray, that is what to say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

__all__ = ["cover"]

_STEP = re.compile(r"""\.\w+|\["(?:[^"\\]|\\.)*"\]|\['(?:[^'\\]|\\.)*'\]|\[[^\]]*\]""")


def cover(some: Sequence[str], everything: Sequence[str]) -> tuple[str, ...]:
    """The shortest paths under which every path of `everything` is one of `some`, in order.

    Args:
        some: paths as code, e.g. `batch["targets"][0]`.
        everything: all paths that there are, `some` among them.

    Returns:
        Prefixes: one where all of `some` share it and nothing else has it.
    """
    total = Counter(prefix for path in everything for prefix in _prefixes(path))
    mine = Counter(prefix for path in some for prefix in _prefixes(path))
    shortest = (next(prefix for prefix in _prefixes(path) if mine[prefix] == total[prefix]) for path in some)
    return tuple(dict.fromkeys(shortest))


def _prefixes(path: str) -> Iterator[str]:
    """The root of a path, then one step more each time, then the path as it stands."""
    start = _STEP.search(path)
    end = start.start() if start else len(path)
    while True:
        yield path[:end]
        step = _STEP.match(path, end)
        if step is None:
            break
        end = step.end()
    if end < len(path):
        yield path
