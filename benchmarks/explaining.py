"""What explaining costs: nothing while nothing fails, an explanation once something has, and a watched step.

    python benchmarks/explaining.py [--rounds 9]

Rounds of the two sides alternate; the figures are medians of CPU seconds, which a busy machine does not stretch.
Aims: 1.0 with `install()` (nothing is added to an operation), 300 ms for the explanation of a traceback of 200 frames
with a model of 500 modules in reach, and for a transformer's training step 2.0 under `watch()` against plain.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

import samedevice
from samedevice.explaining.install import uninstall
from simulation import Step, timed, tiny, transformer


@contextlib.contextmanager
def simulated_and_watched() -> Iterator[None]:
    """A simulation with recorded origins."""
    with samedevice.simulate("cuda"), samedevice.watch():
        yield


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Explanations of uncaught exceptions switched on."""
    samedevice.install()
    try:
        yield
    finally:
        uninstall()


def compare(
    make: Callable[[str], Step], around: Callable[[], AbstractContextManager[object]], rounds: int
) -> list[float]:
    """Median seconds of one step on the CPU: [plain, inside `around`]."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for side, context in enumerate((nullcontext, around)):
            with context():
                step = make("cpu")
                timed(step)
                times[side].append(timed(step))
    return [statistics.median(side) for side in times]


class Deep(nn.Module):
    """500 modules, and a plain tensor that `.to()` leaves behind."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(166)])
        self.scale = torch.ones(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shapes: (batch, 2) to (batch, 2)."""
        return descend(199, x, self)


def descend(depth: int, x: torch.Tensor, model: Deep) -> torch.Tensor:
    """Fail `depth` calls further down."""
    return descend(depth - 1, x, model) if depth else x * model.scale


def explanation(rounds: int) -> float:
    """Median seconds of `explain`, after the modules of the explanation were loaded."""
    with samedevice.simulate("cuda"):
        model, batch = Deep().to("cuda"), torch.ones(1, 2, device="cuda")
        failed = failure(lambda: model(batch))
        samedevice.explain(failed)
        return statistics.median(timed(lambda: samedevice.explain(failed)) for _ in range(rounds))


def failure(step: Step) -> RuntimeError:
    """The exception of `step`."""
    try:
        step()
    except RuntimeError as error:
        return error
    raise AssertionError("nothing failed")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    sides = (
        ("install, tiny", tiny, installed, 1.0),
        ("watch, transformer", transformer, samedevice.watch, 2.0),
        ("simulated and watched", transformer, simulated_and_watched, 2.0),
    )
    print(f"{'step':<24} {'plain ms':>10} {'with ms':>10} {'ratio':>6} {'aim':>5}")
    for name, make, around, aim in sides:
        plain, inside = compare(make, around, options.rounds)
        print(f"{name:<24} {1e3 * plain:>10.2f} {1e3 * inside:>10.2f} {inside / plain:>6.2f} {aim:>5.1f}")
    print(f"explanation: {1e3 * explanation(options.rounds):.0f} ms (aim 300)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
