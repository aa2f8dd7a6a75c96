"""What a type can be to a tree: an atom, a leaf, opaque, or a container with a way to open and rebuild it.

`Container` is the one protocol: `standard`, `attributes` and `third_party` fill it in, `walk` and `replace` use it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Final, TypeAlias

from samedevice.trees.path import Step

__all__ = ["ATOM", "LEAF", "OPAQUE", "Container", "Get", "Kind"]

Get: TypeAlias = "Callable[[int, Any], Any]"
"""`get(id(child), child)`: what stands for the child in the rebuilt structure. It is a dict's own `get`, for speed."""


class _Plain(Enum):
    ATOM = "atom"
    LEAF = "leaf"
    OPAQUE = "opaque"


ATOM: Final = _Plain.ATOM
"""Holds nothing that could be replaced: a string, a number, a function, a class."""
LEAF: Final = _Plain.LEAF
"""Moves itself: its class has a method `to`, as tensors and modules do."""
OPAQUE: Final = _Plain.OPAQUE
"""An object that nobody said how to open. It passes through by identity."""


class Container(ABC):
    """How the objects of one type are opened and rebuilt.

    Rebuilding has two steps so that cycles can close: `begin` makes the object with no more than it needs to exist, and
    `finish` gives it the rest. Neither may run the type's own `__init__`, and neither may change the original.
    """

    @abstractmethod
    def children(self, obj: Any) -> Iterable[Any]:
        """Everything inside `obj`, in a fixed order."""

    @abstractmethod
    def steps(self, obj: Any) -> Iterable[Step | None]:
        """The step to each child, in the order of `children`; None where a child is `obj` itself to its user."""

    def needed(self, obj: Any) -> Iterable[Any]:
        """The children without which `begin` cannot make the object; all of them in a tuple, none in a list."""
        return ()

    @abstractmethod
    def begin(self, obj: Any, get: Get) -> Any:
        """A new object of the type of `obj`; the needed children come from `get`."""

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        """Give `new` the other children, as `get` has them."""
        return

    def build(self, obj: Any, children: list[Any]) -> Any:
        """A new object with `children` in place of its own, in their order: both steps at once."""
        get = dict(zip(map(id, self.children(obj)), children, strict=True)).get
        new = self.begin(obj, get)
        self.finish(new, obj, get)
        return new


Kind: TypeAlias = "_Plain | Container"
