"""Changes that can be undone: how the interpreter tries both sides of a branch and joins what they leave."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from samedevice.linting.devices.lattice import join
from samedevice.linting.devices.places import Cell, Place, unknown
from samedevice.linting.devices.values import UNKNOWN, Value

__all__ = ["Memory", "Writes", "materially_changed"]

_MISSING: Any = object()

Writes = dict[tuple[int, Any], tuple[Any, Any, Any, Any]]
"""(id of target, key) -> target, key, value before, value after."""


class Memory:
    """Writes to values and scopes, recorded while a branch is tried."""

    def __init__(self) -> None:
        self._journal: list[tuple[Any, Any, Any]] = []
        self._open = 0

    def write(self, scope: dict[Any, Value], key: Any, value: Value) -> None:
        """Set `scope[key]`."""
        if self._open:
            self._journal.append((scope, key, scope.get(key, _MISSING)))
        scope[key] = value

    def assign(self, target: Value, attribute: str, value: Any) -> None:
        """Set an attribute of a value."""
        if self._open:
            self._journal.append((target, attribute, getattr(target, attribute)))
        setattr(target, attribute, value)

    def mark(self) -> int:
        """Start recording; every mark is closed by one `rewind` or `keep`."""
        self._open += 1
        return len(self._journal)

    def keep(self, mark: int) -> Writes:
        """Stop recording and leave everything as it is now."""
        writes = self._writes(mark)
        self._close()
        return writes

    def rewind(self, mark: int) -> Writes:
        """Undo everything since `mark`, and tell what it had become."""
        writes = self._writes(mark)
        for target, key, before in reversed(self._journal[mark:]):
            _put(target, key, before)
        del self._journal[mark:]
        self._close()
        return writes

    def replay(self, writes: Writes) -> None:
        """Do again what was undone."""
        for target, key, _, after in writes.values():
            self._set(target, key, after)

    def join(self, undone: Writes, done: Writes) -> None:
        """The state after two branches: `undone` holds the first one's writes, `done` those of the second, in force."""
        names = []
        for key in dict.fromkeys([*undone, *done]):
            target, name, before, first = undone.get(key) or (*done[key][:3], done[key][2])
            second = done[key][3] if key in done else before
            if isinstance(target, dict):
                names.append((target, name, first, second))
            else:
                self._set(target, name, _join_slots(name, first, second))
        # What names stand for is joined by what is in it, which by now is what the branches made of it.
        for target, name, first, second in names:
            self._set(target, name, _join_slots(name, first, second))

    def _set(self, target: Any, key: Any, value: Any) -> None:
        if self._open:
            self._journal.append((target, key, _get(target, key)))
        _put(target, key, value)

    def _writes(self, mark: int) -> Writes:
        writes: Writes = {}
        for target, key, before in self._journal[mark:]:
            slot = (id(target), key)
            if slot not in writes:
                writes[slot] = (target, key, before, _get(target, key))
        return writes

    def _close(self) -> None:
        self._open -= 1
        if not self._open:
            self._journal.clear()


def materially_changed(writes: Writes) -> bool:
    """Whether a loop's body left something from before it in another state, so that a second round may differ."""
    return any(
        before is not _MISSING and before is not after and _kind(before) != _kind(after)
        for _, _, before, after in writes.values()
    )


def _kind(value: Any) -> Any:
    if isinstance(value, Value):
        place = getattr(value, "place", None)
        return type(value), place, getattr(value, "held", None) if place is not None else None
    return value


def _get(target: Any, key: Any) -> Any:
    return target.get(key, _MISSING) if isinstance(target, dict) else getattr(target, key)


def _put(target: Any, key: Any, value: Any) -> None:
    if not isinstance(target, dict):
        setattr(target, key, value)
    elif value is _MISSING:
        target.pop(key, None)
    else:
        target[key] = value


def _join_slots(name: Any, first: Any, second: Any) -> Any:
    if first is second:
        return first
    # Set in one branch only: code that reads it later relies on that branch.
    if first is _MISSING:
        return second
    if second is _MISSING:
        return first
    if isinstance(first, Value) and isinstance(second, Value):
        return join(first, second)
    if isinstance(first, tuple) and isinstance(second, tuple):
        # `items` is None where they are not known; other lists keep what they may hold.
        joined = _join_items(first, second)
        return joined if joined is not None or name == "items" else max(first, second, key=len)
    if isinstance(first, list) and isinstance(second, list):
        return list(_join_items(first, second) or max(first, second, key=len))
    if isinstance(first, Place | Cell) and isinstance(second, Place | Cell):
        return first if first == second else unknown()
    return first if first == second else None


def _join_items(first: Iterable[Any], second: Iterable[Any]) -> tuple[Value, ...] | None:
    first, second = tuple(first), tuple(second)
    if len(first) != len(second):
        return None
    return tuple(
        join(a, b) if isinstance(a, Value) and isinstance(b, Value) else UNKNOWN
        for a, b in zip(first, second, strict=True)
    )
