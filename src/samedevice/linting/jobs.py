"""The same function for many files in several processes, results in the files' order. One that dies stops no other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

__all__ = ["available", "mapped"]

T = TypeVar("T")
R = TypeVar("R")

_CHUNKS_PER_JOB = 8
_LARGEST_CHUNK = 64


def available() -> int:
    """How many processes this one may have running at once."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def mapped(function: Callable[[T], R], items: Sequence[T], jobs: int, died: Callable[[T], R]) -> list[R]:
    """`[function(item) for item in items]`, in up to `jobs` processes.

    Args:
        function: can be pickled, as can items and results.
        items: what it is called with.
        jobs: how many processes; with 1 the work is done in this one.
        died: the result for an item whose process ended without one.

    Returns:
        The results, in the order of the items.
    """
    chunks = list(_chunks(items, jobs))
    jobs = min(jobs, len(chunks))
    if jobs < 2:
        return [function(item) for item in items]
    results: dict[int, list[R]] = {}
    _run(function, dict(enumerate(chunks)), jobs, results)
    # One of these has killed its process, and the others that were on their way with it: find out which, one by one.
    for number, chunk in enumerate(chunks):
        if number not in results:
            alone: dict[int, list[R]] = {}
            for at, item in enumerate(chunk):
                _run(function, {at: [item]}, 1, alone)
            results[number] = [alone[at][0] if at in alone else died(item) for at, item in enumerate(chunk)]
    return [result for number in range(len(chunks)) for result in results[number]]


def _chunks(items: Sequence[T], jobs: int) -> Iterator[Sequence[T]]:
    size = max(1, min(_LARGEST_CHUNK, len(items) // (jobs * _CHUNKS_PER_JOB) or 1))
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _run(function: Callable[[T], R], chunks: dict[int, Sequence[T]], jobs: int, results: dict[int, list[R]]) -> None:
    """Put the results of those chunks into `results` whose processes lived to give them."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(jobs, mp_context=_context(), initializer=_leave_interrupts) as pool:
        waiting = {number: pool.submit(_each, function, chunk) for number, chunk in chunks.items()}
        for number, future in waiting.items():
            try:
                results[number] = future.result()
            except BrokenProcessPool:
                continue
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _leave_interrupts() -> None:
    """Ctrl-C is for the process that started these; they end with it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _each(function: Callable[[T], R], chunk: Sequence[T]) -> list[R]:
    return [function(item) for item in chunk]


def _context() -> BaseContext:
    """A fork starts with all that is loaded; where other threads may hold locks, or without fork, they start anew."""
    import multiprocessing
    import threading

    forks = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if forks else "spawn")
