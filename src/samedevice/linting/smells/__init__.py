"""Device smells: what works, and costs time or ties a program to one machine. Only looked for where they are selected.

One file a smell, named by its slug in `causes/smells`. They read the syntax tree and infer no devices.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator

from samedevice.findings import Finding
from samedevice.linting.smells.scan import Scan, Smell
from samedevice.linting.source import Source

__all__ = ["MODULES", "smells_in"]

MODULES = (
    "cuda_call",
    "device_literal",
    "scattered_availability",
    "round_trip_in_loop",
    "item_per_step",
    "made_then_moved",
    "blocking_copy",
)


def smells_in(source: Source) -> Iterator[Finding]:
    """Every smell in a file, smell by smell."""
    scan = Scan(source)
    for smell in _smells():
        for node, message, fix in smell.check(scan):
            yield scan.finding(smell, node, message, fix)


@functools.cache
def _smells() -> tuple[Smell, ...]:
    return tuple(importlib.import_module(f"samedevice.linting.smells.{name}").SMELL for name in MODULES)
