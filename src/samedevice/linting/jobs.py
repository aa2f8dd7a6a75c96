"""The same function for many files in several processes, results in the files' order. One that dies stops no other."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    done: dict[int, list[R]] = {}
    while waiting := {number: chunk for number, chunk in enumerate(chunks) if number not in done}:
        _run(function, waiting, jobs, done)
        # Whoever kills its process takes those with it that are on their way; one after the other it is the first left.
        if suspects := {number: chunk for number, chunk in waiting.items() if number not in done}:
            _run(function, suspects, 1, done)
            guilty = next((number for number in suspects if number not in done), None)
            if guilty is not None:
                done[guilty] = _one_by_one(function, chunks[guilty], died)
    return [result for number in range(len(chunks)) for result in done[number]]


def _one_by_one(function: Callable[[T], R], items: Sequence[T], died: Callable[[T], R]) -> list[R]:
    done: dict[int, list[R]] = {}
    while waiting := {at: [item] for at, item in enumerate(items) if at not in done}:
        _run(function, waiting, 1, done)
        guilty = next((at for at in waiting if at not in done), None)
        if guilty is not None:
            done[guilty] = [died(items[guilty])]
    return [done[at][0] for at in range(len(items))]


def _chunks(items: Sequence[T], jobs: int) -> Iterator[Sequence[T]]:
    size = max(1, min(_LARGEST_CHUNK, len(items) // (jobs * _CHUNKS_PER_JOB) or 1))
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _run(function: Callable[[T], R], chunks: Mapping[int, Sequence[T]], jobs: int, results: dict[int, list[R]]) -> None:
    """Put the results of those chunks into `results` whose processes lived to give them."""
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(jobs, mp_context=_context(), initializer=_leave_interrupts) as pool:
        waiting: dict[int, Future[list[R]]] = {}
        with contextlib.suppress(BrokenProcessPool):  # it may break while there is still work to hand out
            for number, chunk in chunks.items():
                waiting[number] = pool.submit(_each, function, chunk)
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

    return multiprocessing.get_context("fork" if sys.platform == "linux" and _threads() == 1 else "spawn")


def _threads() -> int:
    """How many threads this process has, those that Python did not start among them."""
    import threading
    from pathlib import Path

    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return threading.active_count()
