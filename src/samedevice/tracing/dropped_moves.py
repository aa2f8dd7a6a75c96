"""A tensor that a line moves without keeping the result, and that is then used where it was: nothing is raised, and
the work is done on the wrong device.

Silent where the same tensor is moved and kept later, and where the line runs more than once for it: then the move was
made for its own sake, to warm up or to measure.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from samedevice.explaining.live import is_tensor
from samedevice.explaining.made import Made
from samedevice.explaining.mending.moving import kept_at
from samedevice.explaining.routes import resolve
from samedevice.explaining.sources import read_source
from samedevice.explaining.syntax import is_discarded_move
from samedevice.findings import Finding
from samedevice.simulation.labels import device_of, storage_of
from samedevice.simulation.observers import Event
from samedevice.texts import say
from samedevice.tracing.origins import OriginTable
from samedevice.tracing.stacks import culprit_of, user_stack

__all__ = ["DroppedMoves"]

_DROPPED = "_dropped"


class DroppedMoves:
    """Looks at events for moves that nothing keeps and for what is then done with the old tensor.

    Args:
        origins: has noted each event before it comes here.
        report: called with each finding.
    """

    def __init__(self, origins: OriginTable, report: Callable[[Finding], None]) -> None:
        self._origins, self._report = origins, report
        self._lines: dict[tuple[str, int], ast.expr | None] = {}
        self.waiting = False
        """Whether any move was dropped so far: until then only moves need to be looked at."""

    def look(self, event: Event) -> None:
        """Note a dropped move, or a use of what one left behind."""
        if event.kind == "moved":
            self._moved(event)
        elif self.waiting and event.kind == "computed":
            self._used(event)

    def _moved(self, event: Event) -> None:
        storage, result = storage_of(event.operands[0]), event.results[0]
        if storage is None or storage_of(result) is storage:
            return
        origin = self._origins.origin_of(result)
        known = self._origins.mark_of(storage, _DROPPED)
        if known is not None:  # kept this time, or moved for the move's own sake
            self._origins.mark(storage, _DROPPED, ())
        elif origin is not None and self._drops(origin.file, origin.line, storage):
            self.waiting = True
            self._origins.mark(storage, _DROPPED, (origin, str(device_of(result))))

    def _drops(self, file: str, line: int, storage: Any) -> bool:
        """Whether the line moves this very tensor and keeps nothing: modules and batches move in place."""
        moved = self._moved_by(file, line)
        frame = next(user_stack(), None) if moved is not None else None
        route = resolve(moved, frame) if frame is not None else None
        return route is not None and is_tensor(route.value) and storage_of(route.value) is storage

    def _moved_by(self, file: str, line: int) -> ast.expr | None:
        """What the line moves, where it keeps nothing; None for any other line."""
        if (file, line) not in self._lines:
            call = is_discarded_move(read_source(file).statement_at(line))
            self._lines[file, line] = getattr(call.func, "value", None) if call is not None else None
        return self._lines[file, line]

    def _used(self, event: Event) -> None:
        storages = [storage_of(operand) for operand in event.operands]
        if any(storage_of(result) is storage for result in event.results for storage in storages):
            return  # a view of it is no use of its values yet
        for operand, storage in zip(event.operands, storages, strict=True):
            found = self._origins.mark_of(storage, _DROPPED) if storage is not None else None
            if found:
                self._origins.mark(storage, _DROPPED, ())
                self._tell(operand, *found)

    def _tell(self, tensor: Any, origin: Any, wanted: str) -> None:
        frame = next(user_stack(), None)
        if frame is None or (frame.file, frame.line) == (origin.file, origin.line):
            return
        made = Made(origin.file, origin.line, origin.function, "moved", origin.operation, True)
        moved, device = self._moved_by(origin.file, origin.line), str(device_of(tensor))
        name = made.source.text_of(moved) if moved is not None else "a tensor"
        self._report(
            Finding(
                code="SD105",
                cause="result-discarded",
                severity="warning",
                message=say(
                    "{name} was to be moved to {wanted}, but is used on {device}",
                    name=name,
                    wanted=wanted,
                    device=device,
                ),
                location=frame.location,
                culprit=culprit_of(name, made, device, tensor),
                expected_device=wanted,
                reasons=(
                    say("a tensor's `.to()` returns the moved copy; nothing keeps it here, so the old one is used"),
                ),
                fix=kept_at(made),
            )
        )
