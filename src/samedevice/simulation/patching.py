"""Replace attributes and put them back exactly: the one way in which a simulation changes anything outside itself.

What `install` saves is the owner's own entry, never the inherited or computed value, so a static method stays one, and
an attribute that the owner only inherited is deleted again. This module decides nothing: which attributes, others say.
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any, Protocol, TypeVar

__all__ = ["Applied", "ItemPatch", "Patch", "Undoable", "for_good"]

_Entered = TypeVar("_Entered")

_ABSENT: Any = type("_Absent", (), {"__repr__": lambda self: "<absent>"})()


class Undoable(Protocol):
    """A change that can be made and unmade."""

    def install(self) -> None:
        """Make the change."""

    def undo(self) -> None:
        """Unmake it; called only after `install`, in the reverse order of all changes."""


class Patch:
    """An attribute of a module, class or object, replaced.

    Args:
        owner: whose attribute; a class written in C that is immutable cannot be one, its Python subclass can.
        name: the attribute, which need not exist.
        replacement: its value while installed. `Patch.ABSENT` removes it.
    """

    ABSENT = _ABSENT
    __slots__ = ("_before", "name", "owner", "replacement")

    def __init__(self, owner: Any, name: str, replacement: Any) -> None:
        self.owner = owner
        self.name = name
        self.replacement = replacement
        self._before: Any = _ABSENT

    def __repr__(self) -> str:
        return f"Patch({getattr(self.owner, '__name__', self.owner)!r}, {self.name!r})"

    @property
    def original(self) -> Any:
        """The value that a read gave before; only while not installed."""
        return getattr(self.owner, self.name)

    def install(self) -> None:
        """Keep the owner's own entry and replace it."""
        self._before = vars(self.owner).get(self.name, _ABSENT)
        _set(self.owner, self.name, self.replacement)

    def undo(self) -> None:
        """Put back what was kept."""
        _set(self.owner, self.name, self._before)
        self._before = _ABSENT


class ItemPatch:
    """An item of a mapping, replaced.

    Args:
        mapping: e.g. `os.environ` or a table of PyTorch.
        key: the key, which need not exist.
        replacement: its value while installed. `Patch.ABSENT` removes it.
    """

    __slots__ = ("_before", "key", "mapping", "replacement")

    def __init__(self, mapping: MutableMapping[Any, Any], key: Any, replacement: Any) -> None:
        self.mapping = mapping
        self.key = key
        self.replacement = replacement
        self._before: Any = _ABSENT

    def install(self) -> None:
        """Keep the item and replace it."""
        self._before = self.mapping.get(self.key, _ABSENT)
        self._put(self.replacement)

    def undo(self) -> None:
        """Put back what was kept."""
        self._put(self._before)
        self._before = _ABSENT

    def _put(self, value: Any) -> None:
        if value is _ABSENT:
            self.mapping.pop(self.key, None)
        else:
            self.mapping[self.key] = value


class Applied:
    """A context within which all `patches` are installed; after it, however it ends, none.

    Args:
        patches: installed in order, undone in reverse; also a half-finished installation is undone.
    """

    def __init__(self, patches: Iterable[Undoable]) -> None:
        self._patches = patches
        self._installed: list[Undoable] = []

    def __enter__(self) -> Applied:
        try:
            self._install(self._patches)
        except BaseException:
            self._undo()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._undo()

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Within it none is installed, as if the context had not been entered. It may be entered again inside."""
        patches = self._undo()
        try:
            yield
        finally:
            self._install(patches)

    def _install(self, patches: Iterable[Undoable]) -> None:
        for patch in patches:
            patch.install()
            self._installed.append(patch)

    def _undo(self) -> list[Undoable]:
        undone, self._installed = self._installed, []
        errors = []
        for patch in reversed(undone):
            try:
                patch.undo()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return undone


def for_good(context: contextlib.AbstractContextManager[_Entered]) -> _Entered:
    """Enter `context` for as long as the process lives.

    Args:
        context: is left among the last things that the process does.

    Returns:
        What entering it gave.
    """
    lasting = contextlib.ExitStack()
    entered = lasting.enter_context(context)
    atexit.register(lasting.close)
    return entered


def _set(owner: Any, name: str, value: Any) -> None:
    if value is not _ABSENT:
        setattr(owner, name, value)
    elif name in vars(owner):
        delattr(owner, name)
