"""A line of the user's code and what it did to a tensor; what is recorded of tensors. Values only."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from samedevice.explaining.making import fixed_device
from samedevice.explaining.sources import Source, read_source
from samedevice.faults import Origin

__all__ = ["Made", "Origins"]


class Origins(Protocol):
    """What was recorded about tensors while the program ran; `tracing` implements it."""

    def origin_of(self, tensor: Any) -> Origin | None:
        """Where the tensor's storage was made, moved, loaded, copied or computed; None where that was not seen."""

    def moves_of(self, tensor: Any) -> Sequence[Origin]:
        """The copies on other devices that were made of it, oldest first."""

    def root_of(self, tensor: Any) -> Origin | None:
        """Where the data that it was computed from were made, moved or loaded."""

    def source_of(self, tensor: Any) -> Any:
        """The living tensor that it was copied or moved from, or None."""

    def entered_of(self, tensor: Any) -> int | None:
        """The storage from before its line that it was computed from by that line, as its `_cdata`, or None."""


@dataclass(frozen=True, slots=True)
class Made:
    """A line of the user's code and what it did to the tensor."""

    file: str
    line: int
    function: str = ""
    event: str = ""
    """made, moved, loaded, copied or computed; "" where only the source was read."""
    operation: str = ""
    recorded: bool = False

    @property
    def source(self) -> Source:
        """The file's source."""
        return read_source(self.file)

    @property
    def statement(self) -> ast.stmt | None:
        """The statement on the line."""
        return self.source.statement_at(self.line)

    @property
    def fixes_device(self) -> bool:
        """Whether the line names a fixed device for what it makes."""
        recorded = self.event in ("made", "moved")
        return fixed_device(self.statement, outermost=not recorded) is not None

    @property
    def text(self) -> str:
        """The line, stripped."""
        return self.source.line(self.line)
