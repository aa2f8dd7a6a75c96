"""A path into nested data that prints as the Python code that leads there: `batch["targets"][3].boxes`.

A path is a chain of steps that share their beginnings, so that walking deep data stays linear; its text is made only
when somebody reads it.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal
from unicodedata import is_normalized

__all__ = ["Path", "Step", "attribute", "element", "item"]

_SHOWN = 20
"""Steps shown at either end of a path that is longer than twice that."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: into an item by its key, an attribute by its name, or an element of a set by its position."""

    kind: Literal["item", "attribute", "element"]
    key: Any

    def around(self) -> tuple[str, str]:
        """What stands before and after the code of the container."""
        if self.kind == "item":
            return "", f"[{_key(self.key)}]"
        if self.kind == "element":
            return "list(", f")[{self.key}]"
        # Python reads identifiers in their NFKC form: another name cannot be written after a dot.
        if self.key.isidentifier() and not keyword.iskeyword(self.key) and is_normalized("NFKC", self.key):
            return "", f".{self.key}"
        return "getattr(", f", {_key(self.key)})"


def item(key: Any) -> Step:
    """The step to `container[key]`."""
    return Step("item", key)


def attribute(name: str) -> Step:
    """The step to `container.name`."""
    return Step("attribute", name)


def element(index: int) -> Step:
    """The step to an element of a set, which has a position and no key."""
    return Step("element", index)


class Path:
    """Where something is in nested data. `str(path)` is code; `path / step` is one step further in."""

    __slots__ = ("_parent", "_step")

    def __init__(self, root: str) -> None:
        self._parent: Path | None = None
        self._step: Step | str = root

    def __truediv__(self, step: Step | None) -> Path:
        """One step further in; no step at all stays here (the `data` of a UserDict is the UserDict to its user)."""
        if step is None:
            return self
        deeper = Path.__new__(Path)
        deeper._parent, deeper._step = self, step
        return deeper

    def steps(self) -> list[Step]:
        """The steps from the root to here."""
        found: list[Step] = []
        here = self
        while here._parent is not None:
            assert isinstance(here._step, Step)
            found.append(here._step)
            here = here._parent
        return found[::-1]

    @property
    def root(self) -> str:
        """The expression that the path begins with."""
        here = self
        while here._parent is not None:
            here = here._parent
        return str(here._step)

    def __str__(self) -> str:
        around = [step.around() for step in _abridged(self.steps())]
        before = "".join(prefix for prefix, _ in reversed(around))
        return before + self.root + "".join(suffix for _, suffix in around)

    def __repr__(self) -> str:
        return f"<Path {self}>"


class _Gap(Step):
    def around(self) -> tuple[str, str]:
        return "", "…"


def _abridged(steps: list[Step]) -> list[Step]:
    if len(steps) <= 2 * _SHOWN:
        return steps
    return [*steps[:_SHOWN], _Gap("item", None), *steps[-_SHOWN:]]


def _key(key: Any) -> str:
    """The code of a key: its repr where that is short and runs no foreign code, else its type."""
    if type(key) is str:
        text = repr(key)
        return f'"{text[1:-1]}"' if text[0] == "'" and '"' not in text else text
    if isinstance(key, Enum):
        return f"{type(key).__name__}.{key.name}"
    if type(key) is tuple:
        return f"({', '.join(map(_key, key))}{',' if len(key) == 1 else ''})"
    if type(key) in (int, float, bool, complex, bytes, type(None)):
        return repr(key)
    return f"<{type(key).__name__}>"
