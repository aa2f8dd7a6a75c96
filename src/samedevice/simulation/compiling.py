"""`torch.compile` runs eagerly in a simulation: dynamo would read where tensors really are and bake that in.

`torch.jit` is left to itself: its operators reach the dispatch mode. The stand-ins for factories are registered with it as the
operators that they stand for, so that scripted code may name them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from samedevice.simulation.patching import Patch

__all__ = ["patches"]


def patches() -> Iterator[Patch]:
    """The replacement of `torch.compile`.

    Yields:
        One patch.
    """
    noted: list[str] = []

    def compile(model: Any = None, **options: Any) -> Any:  # noqa: A001
        if not noted:
            noted.append("torch.compile")
            print("samedevice: torch.compile is not simulated; the code runs eagerly.", file=sys.stderr)
        return model if model is not None else _as_it_is

    yield Patch(torch, "compile", compile)


def _as_it_is(model: Callable[..., Any]) -> Callable[..., Any]:
    return model
