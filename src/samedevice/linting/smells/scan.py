"""What every smell asks of a file: its nodes, what stands around them, and what a name refers to by its import."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from samedevice.findings import Finding, Fix
from samedevice.linting.source import Source

__all__ = ["Scan", "Seen", "Smell"]

Function = ast.FunctionDef | ast.AsyncFunctionDef
Seen = tuple[ast.AST, str, Fix | None]
"""The node, the message and the fix."""

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Smell:
    """Speaks for one smell."""

    code: str
    slug: str
    check: Callable[[Scan], Iterator[Seen]]


class Scan:
    """A parsed file, walked once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = []
        self.names: dict[str, str] = {}
        """What imports bind: `{"nn": "torch.nn"}`."""
        waiting: list[ast.AST] = [source.tree]
        while waiting:
            node = waiting.pop()
            self.nodes.append(node)
            children = list(ast.iter_child_nodes(node))
            self.parents.update(dict.fromkeys(children, node))
            waiting.extend(reversed(children))
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.names.update(_bound(node))

    def calls(self) -> Iterator[ast.Call]:
        """Every call, in the order of the source."""
        return (node for node in self.nodes if isinstance(node, ast.Call))

    def qualified(self, node: ast.AST) -> str:
        """The dotted name that an expression stands for by the file's imports; empty where it is none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.names:
            return ""
        return ".".join([self.names[node.id], *reversed(parts)])

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def function_of(self, node: ast.AST) -> Function | None:
        """The function that a node is in."""
        return next((each for each in self.ancestors(node) if isinstance(each, Function)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose body or method a node is in."""
        return next((each for each in self.ancestors(node) if isinstance(each, ast.ClassDef)), None)

    def loops_of(self, node: ast.AST) -> Iterator[ast.For | ast.AsyncFor | ast.While]:
        """The loops of the same function that run a node each round, innermost first."""
        child = node
        for parent in self.ancestors(node):
            if isinstance(parent, _SCOPES):
                return
            if isinstance(parent, _LOOPS) and any(child is statement for statement in parent.body):
                yield parent
            child = parent

    def is_main(self, node: ast.AST) -> bool:
        """Whether a node is in `if __name__ == "__main__"` or in a function called `main`."""
        return any(
            (isinstance(each, ast.If) and any(_is_dunder_name(part) for part in ast.walk(each.test)))
            or (isinstance(each, Function) and each.name == "main")
            for each in self.ancestors(node)
        )

    def device_name(self, node: ast.AST) -> str | None:
        """What the function around `node` calls the device that it is given, or its object `self.device`."""
        function = self.function_of(node)
        if function is None:
            return None
        spec = function.args
        given = [each.arg for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
        if "device" in given:
            return "device"
        cls = self.class_of(function)
        stored = cls is not None and any(
            isinstance(each, ast.Attribute) and each.attr == "device" and isinstance(each.ctx, ast.Store)
            for each in ast.walk(cls)
        )
        return "self.device" if stored and given[:1] == ["self"] else None

    def finding(self, smell: Smell, node: ast.AST, message: str, fix: Fix | None) -> Finding:
        """A smell as a finding."""
        function = self.function_of(node)
        location = self.source.location(node, function.name if function else None)
        return Finding(smell.code, smell.slug, message, location, severity="warning", fix=fix)


def _is_dunder_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "__name__"


def _bound(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            whole = alias.asname is not None
            yield (
                (alias.asname or alias.name.partition(".")[0]),
                (alias.name if whole else alias.name.partition(".")[0]),
            )
    elif node.module is not None and node.level == 0:
        for alias in node.names:
            yield (alias.asname or alias.name), f"{node.module}.{alias.name}"
