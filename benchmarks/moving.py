"""How long moving takes: `move_to_device` beside other movers and a careful recursion by hand.

    python benchmarks/moving.py [--rounds N] [--only NAME]

All movers run in one process, one after the other in each round, so that a busy moment of the machine meets all of
them; the table shows medians of the process's CPU time over the rounds. Each mover's answer is checked first: types,
devices, values that are no tensors. A mover that is not installed is named and left out. "already there" moves CPU data
to the CPU; "to meta" moves it to the meta device, which allocates nothing: the mover is timed and not the memory.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import importlib
import statistics
import sys
import time
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import samedevice

Boxes = namedtuple("Boxes", ["corners", "scores"])
Mover = Callable[[Any, torch.device], Any]


@dataclasses.dataclass
class Sample:
    """A dataclass with a namedtuple inside."""

    image: Tensor
    boxes: Boxes
    name: str


def by_hand(obj: Any, device: torch.device) -> Any:
    """The recursion that a careful person writes: exact types first, and no `.to` where nothing is to do."""
    kind = type(obj)
    if kind is Tensor:
        return obj if obj.device == device else obj.to(device)
    if kind is dict:
        return {key: by_hand(value, device) for key, value in obj.items()}
    if kind is list:
        return [by_hand(value, device) for value in obj]
    if kind is tuple:
        return tuple([by_hand(value, device) for value in obj])
    if kind is str or kind is int or kind is float or obj is None:
        return obj
    if isinstance(obj, Tensor):
        return obj if obj.device == device else obj.to(device)
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return kind(*[by_hand(value, device) for value in obj])
    if dataclasses.is_dataclass(obj):
        return kind(**{field.name: by_hand(getattr(obj, field.name), device) for field in dataclasses.fields(obj)})
    return obj


def workloads() -> dict[str, Any]:
    def small(*size: int) -> Tensor:
        return torch.ones(size or (4,))

    deep: Any = small()
    for _ in range(50):
        deep = [deep, 1]
    target = ("boxes", "labels", "scores", "masks", "area")
    return {
        "3 tensors": {"image": small(), "mask": small(), "label": small()},
        "tokenizer batch of 4": {name: small() for name in ("input_ids", "attention_mask", "token_type_ids", "labels")},
        "64 detection targets of 5": [{name: small() for name in target} for _ in range(64)],
        "10,000 small tensors": [small() for _ in range(10_000)],
        "depth 50": deep,
        "8 tensors of 64 MB": [torch.ones(16 * 1024 * 1024) for _ in range(8)],
        "dataclass with a namedtuple": Sample(small(), Boxes(small(), small()), "street"),
    }


def movers() -> dict[str, Mover]:
    """All movers that are installed, by name."""
    found: dict[str, Mover] = {"by hand": by_hand, "samedevice": samedevice.move_to_device}

    def add(name: str, module: str, make: Callable[[Any], Mover]) -> None:
        try:
            found[name] = make(importlib.import_module(module))
        except ImportError as error:
            print(f"{name} is left out: {error}")

    add("accelerate", "accelerate.utils", lambda module: module.send_to_device)
    add("Lightning", "lightning_fabric.utilities", lambda module: module.move_data_to_device)
    add("Ignite", "ignite.utils", lambda module: module.convert_tensor)
    add("TensorDict", "tensordict", lambda _: lambda data, device: data.to(device))
    add("optree", "optree", lambda module: lambda data, device: module.tree_map(_leaf(device), data))
    add("torch pytree", "torch.utils._pytree", lambda module: lambda data, device: module.tree_map(_leaf(device), data))
    return found


def _leaf(device: torch.device) -> Callable[[Any], Any]:
    return lambda leaf: leaf.to(device) if isinstance(leaf, Tensor) else leaf


def flat(obj: Any) -> list[Any]:
    """The types and tensors of nested data in order, to compare answers by."""
    if isinstance(obj, Tensor):
        return [obj]
    if dataclasses.is_dataclass(obj):
        return [type(obj), *(part for field in dataclasses.fields(obj) for part in flat(getattr(obj, field.name)))]
    if isinstance(obj, dict):
        return [type(obj), *obj, *(part for value in obj.values() for part in flat(value))]
    if isinstance(obj, (list, tuple)):
        return [type(obj), *(part for value in obj for part in flat(value))]
    return [obj]


def is_right(mover: Mover, data: Any, device: torch.device) -> bool:
    """Whether the answer has the same structure with every tensor on `device`."""
    try:
        before, after = flat(data), flat(mover(data, device))
    except Exception:
        return False
    return len(before) == len(after) and all(
        new.device == device and new.shape == old.shape if isinstance(old, Tensor) else new == old
        for old, new in zip(before, after, strict=True)
    )


def input_for(name: str, data: Any) -> Any | None:
    """TensorDict moves only what is one already; None where the data cannot be."""
    if name != "TensorDict":
        return data
    from tensordict import TensorDict

    return TensorDict(data) if isinstance(data, dict) else None


def measure(data: Any, device: torch.device, candidates: dict[str, Mover], rounds: int) -> dict[str, float | str]:
    """Median seconds a call, by mover; a word where there is no time."""
    inputs = {name: input_for(name, data) for name in candidates}
    result: dict[str, float | str] = dict.fromkeys(candidates, "–")
    timed = []
    for name, mover in candidates.items():
        if inputs[name] is None:
            continue
        if name != "TensorDict" and not is_right(mover, data, torch.device("meta")):
            # Where everything is there already, a mover that does not look inside is right by chance.
            result[name] = "wrong"
        else:
            timed.append(name)
    calls = max(1, int(2e-3 / _time(by_hand, data, device, 3)))
    samples: dict[str, list[float]] = {name: [] for name in timed}
    for turn in range(rounds):
        for name in timed if turn % 2 else reversed(timed):
            samples[name].append(_deeper(turn, lambda name=name: _time(candidates[name], inputs[name], device, calls)))
    return {**result, **{name: statistics.median(times) for name, times in samples.items()}}


def _deeper(frames: int, call: Callable[[], float]) -> float:
    """Call below some more frames: where a recursion crosses from one piece of CPython's stack to the next, it is slow.

    It does so at another depth for each mover, which would decide between them if all rounds began at one depth.
    """
    return _deeper(frames - 1, call) if frames else call()


def _time(mover: Mover, data: Any, device: torch.device, calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        mover(data, device)
    return (time.process_time() - begin) / calls


def table(title: str, rows: dict[str, dict[str, float | str]]) -> str:
    """A markdown table: microseconds a call, and how many times the recursion by hand."""
    names = list(next(iter(rows.values())))
    lines = [f"| {title} | {' | '.join(names)} | times by hand |", "| --- |" + " ---: |" * (len(names) + 1)]
    for workload, row in rows.items():
        cells = [cell if isinstance(cell, str) else f"{cell * 1e6:.2f}" for cell in row.values()]
        ratio = float(row["samedevice"]) / float(row["by hand"])
        lines.append(f"| {workload} | {' | '.join(cells)} | {ratio:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--only", help="a part of a workload's name")
    parser.add_argument("--quick", action="store_true", help="only by hand and samedevice")
    options = parser.parse_args()
    torch.set_num_threads(1)
    candidates = movers()
    if options.quick:
        candidates = {name: candidates[name] for name in ("by hand", "samedevice")}
    gc.disable()
    print(
        f"Python {sys.version.split()[0]}, torch {torch.__version__}; microseconds a call, medians of {options.rounds}"
    )
    chosen = {name: data for name, data in workloads().items() if not options.only or options.only in name}
    for title, device in (("already there", torch.device("cpu")), ("to meta", torch.device("meta"))):
        rows = {name: measure(data, device, candidates, options.rounds) for name, data in chosen.items()}
        print(f"\n{table(title, rows)}")


if __name__ == "__main__":
    main()
