"""Where each tensor came from: the user's line that made, moved, loaded, copied or computed it.

The record is kept on the storage's own Python object, so views share it, it dies with the storage, and no tensor is
kept alive by it (see the note on labels in `simulation.labels`, which does the same; `UntypedStorage` has had a
`__dict__` since before torch 2.6). Only what happens while a table is recording is known.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from samedevice.faults import Origin
from samedevice.simulation.labels import device_of, device_so_far, storage_of
from samedevice.simulation.observers import Event
from samedevice.simulation.storage_objects import protection
from samedevice.usercode import is_user_file

__all__ = ["OriginTable"]

_numbers = itertools.count()
_COPIES = ("aten::clone", "aten::_to_copy", "aten::deepcopy", "aten::copy")
_LIFT = "aten::lift_fresh"
"""How `torch.tensor` and `as_tensor` show: their new tensor comes in and goes out, in the storage that it was given."""
_MOST_MOVES = 8


class _Record(NamedTuple):
    file: str
    line: int
    function: str
    event: str
    device: str
    operation: str
    source: Any
    """A weak reference to the tensor that it was copied or moved from, or None."""
    root: Any = None
    """Of a computed one: the record of what was made, moved or loaded that its first operand goes back to."""
    entered: Any = None
    """Of a computed one: a weak reference to the storage that its line was given and that it goes back to."""


class OriginTable:
    """The origins of all tensors seen while recording. `record` is the observer; the rest answers questions."""

    def __init__(self) -> None:
        self._attribute = f"_samedevice_origin_{next(_numbers)}"
        self._moves = self._attribute + "_moves"
        self._is_user: dict[str, bool] = {}
        self._protect = protection()

    def record(self, event: Event) -> None:
        """Note where the results of `event` came from; results that share an operand's storage are no news."""
        if event.operation == _LIFT:
            event = event._replace(kind="made", operands=())
        known = [storage_of(operand) for operand in event.operands]
        place: tuple[str, int, str] | None = None
        for result in event.results:
            storage = storage_of(result)
            if storage is None or any(storage is other for other in known):
                continue
            place = place or self._place()
            computed = event.kind == "computed"
            root = self._root(known) if computed else None
            entered = self._entered(known, place) if computed else None
            self._note(storage, result, event, place, root, entered)

    def origin_of(self, tensor: Any) -> Origin | None:
        """Where the tensor's storage came from; None where that was not seen or lies outside the user's code."""
        found = self._read(tensor, self._attribute)
        if found is None or not found.file:
            return None
        # `torch.tensor(…, device="cuda")` learns its device only after it was noted.
        late = found.device == "cpu" and str(device_of(tensor))
        return replace(_as_origin(found), device=late or found.device)

    def moves_of(self, tensor: Any) -> tuple[Origin, ...]:
        """The copies of it that were made on other devices, oldest first."""
        return tuple(_as_origin(record) for record in self._read(tensor, self._moves) or () if record.file)

    def root_of(self, tensor: Any) -> Origin | None:
        """Where the data that it was computed from were made, moved or loaded; for others the same as `origin_of`."""
        found = self._read(tensor, self._attribute)
        root = (found.root or found) if found is not None else None
        return _as_origin(root) if root is not None and root.file else None

    def source_of(self, tensor: Any) -> Any:
        """The living tensor that it was copied or moved from, or None."""
        found = self._read(tensor, self._attribute)
        return found.source() if found is not None and found.source is not None else None

    def entered_of(self, tensor: Any) -> int | None:
        """The storage from before its line that it was computed from by that line, as a key; None where it is gone."""
        found = self._read(tensor, self._attribute)
        storage = found.entered() if found is not None and found.entered is not None else None
        return None if storage is None else int(storage._cdata)

    def _entered(self, storages: list[Any], place: tuple[str, int, str]) -> Any:
        """A line that calls a library computes many tensors, one from the other: all go back to what it was given."""
        storage = next((each for each in storages if each is not None), None)
        record: _Record | None = getattr(storage, self._attribute, None)
        if record is not None and record.entered is not None and record[:3] == place:
            return record.entered
        return None if storage is None else weakref.ref(storage)

    def mark(self, storage: Any, name: str, value: Any) -> None:
        """Keep `value` with a storage, for as long as the storage lives."""
        self._write(storage, self._attribute + name, value)

    def mark_of(self, storage: Any, name: str) -> Any:
        """What was kept with a storage under this name; None for nothing."""
        return getattr(storage, self._attribute + name, None)

    def _root(self, storages: list[Any]) -> _Record | None:
        for storage in storages:
            record: _Record | None = getattr(storage, self._attribute, None)
            if record is not None:
                return record.root or record
        return None

    def _note(
        self,
        storage: Any,
        result: torch.Tensor,
        event: Event,
        place: tuple[str, int, str],
        root: _Record | None,
        entered: Any,
    ) -> None:
        kind: str = event.kind
        if kind == "computed" and event.operation.startswith(_COPIES):
            kind = "copied"
        source = event.operands[0] if event.operands and kind in ("moved", "copied") else None
        reference = weakref.ref(source) if source is not None else None
        # Looking must not settle where a floating storage is; see `simulation.labels`.
        device = str(device_so_far(result))
        record = _Record(*place, kind, device, event.operation, reference, root, entered)
        self._write(storage, self._attribute, record)
        if kind == "moved" and source is not None:
            self._note_move(source, record)

    def _note_move(self, source: torch.Tensor, record: _Record) -> None:
        storage = storage_of(source)
        if storage is not None:
            moves = getattr(storage, self._moves, ())
            self._write(storage, self._moves, (*moves, record)[-_MOST_MOVES:])

    def _write(self, storage: Any, attribute: str, value: Any) -> None:
        if self._protect is not None:
            self._protect(storage)
        setattr(storage, attribute, value)

    def _read(self, tensor: Any, attribute: str) -> Any:
        storage = storage_of(tensor) if isinstance(tensor, torch.Tensor) else None
        return getattr(storage, attribute, None) if storage is not None else None

    def _place(self) -> tuple[str, int, str]:
        """The innermost line of the user's code; ("", 0, "") where none is on this thread's stack."""
        frame = sys._getframe(2)
        known = self._is_user
        while frame is not None:
            file = frame.f_code.co_filename
            own = known.get(file)
            if own is None:
                own = known[file] = is_user_file(file)
            if own:
                return file, frame.f_lineno, frame.f_code.co_name
            frame = frame.f_back  # type: ignore[assignment]
        return "", 0, ""


def _as_origin(record: _Record) -> Origin:
    return Origin(record.file, record.line, record.function, record.event, record.device, record.operation)
