"""Whole runs of `samedevice lint`: several processes, a warm cache, the start, and TorchFix on the same files.

Everything is a ratio of two commands that are run in turns, so that a busy moment of the machine meets both. CPU time
is what the process and its children used; only what several processes gain is measured in wall time.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["print_runs"]

SAMEDEVICE = (sys.executable, "-m", "samedevice")
BARE = (sys.executable, "-c", "pass")


@dataclass(frozen=True)
class Taken:
    """Seconds of one run."""

    wall: float
    cpu: float


def timed(command: Sequence[str], cache: Path) -> Taken:
    """Run a command to its end, its output thrown away."""
    # Compiled files are written, as they are where a package is installed.
    environment = {
        **os.environ,
        "SAMEDEVICE_CACHE_DIR": str(cache),
        "PYTHONPYCACHEPREFIX": str(cache.parent / "compiled"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def in_turns(first: Callable[[], Taken], second: Callable[[], Taken], rounds: int) -> tuple[Taken, Taken]:
    """The quickest of several runs of each."""
    runs = [(first(), second()) for _ in range(rounds)]
    best = [
        Taken(min(each.wall for each in column), min(each.cpu for each in column)) for column in zip(*runs, strict=True)
    ]
    return best[0], best[1]


def print_runs(folder: Path, torchfix: str | None) -> None:
    """Print a line a ratio.

    Args:
        folder: what is linted.
        torchfix: a Python that has TorchFix; None leaves it out.
    """
    with tempfile.TemporaryDirectory() as name:
        kept, empty = Path(name, "cache"), Path(name, "empty.py")
        empty.write_text("x = 1\n", encoding="utf-8")

        def run(*command: str) -> Callable[[], Taken]:
            return lambda: timed(command, kept)

        lint = (*SAMEDEVICE, "lint")
        one, two = in_turns(
            run(*lint, "--no-cache", "--jobs", "1", str(folder)),
            run(*lint, "--no-cache", "--jobs", "2", str(folder)),
            3,
        )
        faster = one.wall / two.wall
        print(f"--jobs 2: {one.wall:.2f} s -> {two.wall:.2f} s wall, {faster:.2f} times as fast (aim: near 2)")
        timed((*lint, str(folder)), kept)
        cold, warm = in_turns(
            run(*lint, "--no-cache", "--jobs", "1", str(folder)), run(*lint, "--jobs", "1", str(folder)), 3
        )
        print(
            f"warm cache: {cold.cpu:.2f} s -> {warm.cpu:.2f} s CPU, {warm.cpu / cold.cpu:.3f} of it (aim: at most 0.1)"
        )
        for what, command in (
            ("samedevice --version", (*SAMEDEVICE, "--version")),
            ("import samedevice", (sys.executable, "-c", "import samedevice")),
            ("lint of a file without torch", (*lint, str(empty))),
        ):
            bare, ours = in_turns(run(*BARE), run(*command), 20)
            print(f"start, {what}: {ours.cpu / bare.cpu:.1f} times bare Python's {1000 * bare.cpu:.0f} ms CPU (aim: 2)")
        if torchfix is not None:
            ours, theirs = in_turns(
                run(*lint, "--no-cache", "--jobs", "1", str(folder)), run(torchfix, "-m", "torchfix", str(folder)), 1
            )
            print(
                f"TorchFix: {theirs.cpu:.1f} s CPU for the same files, {theirs.cpu / ours.cpu:.0f} times ours (aim: 20)"
            )
