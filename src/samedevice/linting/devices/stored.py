"""Which attributes are assigned where, so that what `__init__` leaves is not taken for what they always hold.

Looks at statements only, not into expressions, so that a look at a whole file costs little.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["StoredAttributes"]

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_TARGETS = ("targets", "target", "items")


class StoredAttributes:
    """The attributes that a file assigns, and how many functions and classes it defines."""

    def __init__(self, tree: ast.Module) -> None:
        self.elsewhere: set[str] = set()
        """Assigned on anything but `self`."""
        self.by_method: dict[int, set[str]] = {}
        """Assigned on `self`, by the id of the function in which that is done."""
        self.definitions = 0
        self._look(tree, ())

    def _look(self, node: ast.AST, around: tuple[set[str], ...]) -> None:
        waiting: list[tuple[ast.AST, tuple[set[str], ...]]] = [(node, around)]
        while waiting:
            node, around = waiting.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.definitions += 1
                own = self.by_method[id(node)] = set()
                around = (*around, own)
            elif isinstance(node, ast.ClassDef):
                self.definitions += 1
            for target in _targets(node):
                self._store(target, around)
            for block in _BLOCKS:
                waiting.extend((part, around) for part in getattr(node, block, ()))

    def _store(self, target: ast.AST, around: tuple[set[str], ...]) -> None:
        if isinstance(target, ast.Attribute):
            if isinstance(target.value, ast.Name) and target.value.id == "self":
                for names in around:
                    names.add(target.attr)
            else:
                self.elsewhere.add(target.attr)
        elif isinstance(target, ast.Starred):
            self._store(target.value, around)
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._store(part, around)


def _targets(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Delete):
        return
    for field in _TARGETS:
        found = getattr(node, field, None)
        for part in found if isinstance(found, list) else (found,):
            target = part.optional_vars if isinstance(part, ast.withitem) else part
            if target is not None:
                yield target
