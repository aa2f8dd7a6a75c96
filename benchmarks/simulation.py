"""What a simulation costs: the same step plain and under `simulate("cuda")`, side by side in one run.

    python benchmarks/simulation.py [--rounds 9] [--origins]
    python benchmarks/simulation.py --memory [--steps 10000]

Rounds alternate between the two, so that a busy machine slows both; the figures are medians of the processor's time for
one step, in ms. Aims: 1.5 for the transformer's training step, 1.3 for the convolutional one, 8 for the loop of tiny
operations. With `--origins` each tensor's origin is recorded on top, as `samedevice run` does.

`--memory` trains for many steps in one simulation and prints what the process holds on the way: memory and objects of
Python, and what the simulated device says of its own. Aim: after the first tenth no figure grows. Exit status 1 if one
does.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import samedevice

Step = Callable[[], object]


def transformer(device: str) -> Step:
    """A training step: 4 layers of width 256, batch 16 of 128 tokens, AdamW."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = nn.Sequential(nn.Embedding(1000, 256), nn.TransformerEncoder(layer, 4), nn.Linear(256, 1000)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(1000, (16, 128), device=device)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()

    return step


class Block(nn.Module):
    """Two convolutions with a shortcut, as in ResNet-18."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])
        self.shortcut = nn.Conv2d(channels, width, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shapes: (batch, channels, h, w) to (batch, width, h / stride, w / stride)."""
        y = self.norms[0](self.first(x)).relu()
        return (self.norms[1](self.second(y)) + self.shortcut(x)).relu()


def convolutional(device: str) -> Step:
    """A training step: 8 blocks from 32 to 256 channels, batch 4 of 64 x 64, SGD with momentum."""
    widths = [
        (3, 32, 1),
        (32, 32, 1),
        (32, 64, 2),
        (64, 64, 1),
        (64, 128, 2),
        (128, 128, 1),
        (128, 256, 2),
        (256, 256, 1),
    ]
    blocks = [Block(*shape) for shape in widths]
    model = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images, labels = torch.randn(4, 3, 64, 64, device=device), torch.randint(10, (4,), device=device)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def tiny(device: str) -> Step:
    """1,000 operations on 3 elements each."""
    x, y = torch.ones(3, device=device), torch.ones(3, device=device)

    def step() -> None:
        for _ in range(250):
            z = x * y
            z = z + y
            z = z.relu()
            z.add_(1)

    return step


Watching = Callable[[], contextlib.AbstractContextManager[object]]


def median_times(make: Callable[[str], Step], rounds: int, watching: Watching) -> tuple[float, float]:
    """Seconds of one step, plain and simulated, the rounds taking turns."""
    times: tuple[list[float], list[float]] = ([], [])
    plain = make("cpu")
    with samedevice.simulate("cuda"):
        simulated = make("cuda")
        timed(simulated)
    timed(plain)
    for _ in range(rounds):
        times[0].append(timed(plain))
        # Labels belong to one simulation: make the step anew in each.
        with watching(), samedevice.simulate("cuda"):
            simulated = make("cuda")
            timed(simulated)
            times[1].append(timed(simulated))
    return statistics.median(times[0]), statistics.median(times[1])


def timed(step: Step) -> float:
    """Seconds of one call, while nobody else had the processor."""
    start = time.process_time()
    step()
    return time.process_time() - start


class Small(nn.Module):
    """Much of what leaves something behind, at a size that trains quickly: recurrence, norms, dropout, indexing."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(20, 8), nn.LSTM(8, 8, batch_first=True)
        self.norm, self.dropout, self.head = nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 20)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Shapes: (batch, length) to (batch, 20)."""
        return self.head(self.dropout(self.norm(self.lstm(self.embedding(tokens))[0]))[:, -1])


def trained(device: str) -> Step:
    """A whole step: a batch from the CPU, mixed precision, a scaler, clipping, a scheduler, a metric, a checkpoint."""
    model = Small().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    scaler, scheduler = torch.amp.GradScaler(device), torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9999)
    total = torch.zeros((), device=device)

    def step() -> None:
        tokens, target = torch.randint(20, (4, 5)).to(device), torch.randint(20, (4,)).to(device)
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(tokens), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        total.add_(loss.detach())
        with contextlib.suppress(RuntimeError):
            model(tokens.cpu())
        torch.save(model.state_dict(), io.BytesIO())

    return step


def held() -> tuple[int, int, int]:
    """What this process holds: KiB of memory, objects of Python, bytes of the simulated device."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * resource.getpagesize() // 1024, len(gc.get_objects()), torch.cuda.memory_allocated()


def memory(steps: int) -> int:
    """Print what is held on the way through many steps.

    Returns:
        1 where something grew by more than 2 % after the first tenth, else 0.
    """
    figures = []
    print(f"{'step':>8} {'memory KiB':>12} {'objects':>10} {'device bytes':>13}")
    with samedevice.simulate("cuda"):
        step = trained("cuda")
        for number in range(1, steps + 1):
            step()
            if number % max(1, steps // 10) == 0:
                figures.append(held())
                print(f"{number:>8} {figures[-1][0]:>12} {figures[-1][1]:>10} {figures[-1][2]:>13}", flush=True)
    return int(any(last > 1.02 * first for first, last in zip(figures[0], figures[-1], strict=True)))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--origins", action="store_true", help="record where each tensor comes from, as `run` does")
    parser.add_argument("--memory", action="store_true", help="what is held over many steps, instead of times")
    parser.add_argument("--steps", type=int, default=10_000, help="how many, for --memory")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.memory:
        return memory(options.steps)
    watching: Watching = samedevice.watch if options.origins else contextlib.nullcontext
    print(f"{'step':<14} {'plain ms':>10} {'simulated ms':>13} {'ratio':>6} {'aim':>5}")
    for make, aim in ((transformer, 1.5), (convolutional, 1.3), (tiny, 8.0)):
        plain, simulated = median_times(make, options.rounds, watching)
        print(
            f"{make.__name__:<14} {1e3 * plain:>10.2f} {1e3 * simulated:>13.2f} {simulated / plain:>6.2f} {aim:>5.1f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
