"""One model family: how it is made, what it is given, and which device bug is planted in it. Imports no library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Family:
    """A model with random weights that is small enough to train one step in a second.

    Attributes:
        name: the test's.
        package: what must be installed.
        make: makes the model.
        batch: makes its keyword arguments, on the CPU.
        behind: the entry of the batch that a planted bug leaves on the CPU.
        operation: the operator that refuses it on a real machine.
        words: part of what it says then.
        part: the submodule that another planted bug leaves on the CPU.
        loss: the number to go down, from what the model returns.
        repeatable: two runs with the same seeds give the same values.
    """

    name: str
    package: str
    make: Callable[[], Any]
    batch: Callable[[], dict[str, Any]]
    behind: str
    operation: str
    words: str
    part: str
    loss: Callable[[Any], Any] = lambda output: output.loss
    repeatable: bool = True
