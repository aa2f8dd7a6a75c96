"""What is being interpreted: functions, class bodies and modules, and the arguments of calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from samedevice.linting.devices.values import Class, Scope, Value

__all__ = ["Arguments", "Frame"]


@dataclass(slots=True)
class Arguments:
    """The evaluated arguments of a call."""

    positional: list[Value] = field(default_factory=list)
    nodes: list[ast.AST] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    keyword_nodes: dict[str, ast.AST] = field(default_factory=dict)
    complete: bool = True
    """False where *args or **kwargs hold more than is known."""

    def get(self, position: int, keyword: str) -> Value | None:
        """The argument at `position` or called `keyword`."""
        if 0 <= position < len(self.positional):
            return self.positional[position]
        return self.keywords.get(keyword)

    def node(self, position: int, keyword: str, default: ast.AST) -> ast.AST:
        """Where that argument is written."""
        if 0 <= position < len(self.nodes):
            return self.nodes[position]
        return self.keyword_nodes.get(keyword, default)

    def all(self) -> Iterator[tuple[Value, ast.AST, str]]:
        """Each argument, its expression and its keyword."""
        for value, node in zip(self.positional, self.nodes, strict=True):
            yield value, node, ""
        for name, value in self.keywords.items():
            yield value, self.keyword_nodes[name], name


@dataclass(slots=True)
class Frame:
    """A function, class body or module that is being interpreted."""

    scopes: tuple[Scope, ...]
    """Own names first, then those of the functions around it, the module's last."""
    name: str = ""
    node: ast.AST | None = None
    cls: Class | None = None
    receiver: Value | None = None
    call: ast.AST | None = None
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    global_names: set[str] = field(default_factory=set)
    nested: bool = False
    """A comprehension's names inside a function, and no call of it."""
    guards: int = 0
    """How many conditions about devices hold here: code that asks knows what it does."""
