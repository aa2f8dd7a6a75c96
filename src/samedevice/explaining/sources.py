"""The user's source files, parsed once: which statement, expression, function or class stands at a line.

Text comes from `linecache`, so notebook cells and sources registered there by `exec` are found too. A file that is
gone or does not parse is an empty source, never an error.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from samedevice.explaining.spelling import on_one_line

__all__ = ["Function", "Loop", "Source", "expressions_of", "read_source"]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
_COMPOUND: tuple[type[ast.stmt], ...] = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While, ast.With),
    *(ast.AsyncWith, ast.Try, getattr(ast, "TryStar", ast.Try), ast.Match),  # Python 3.11 and newer
)


@dataclass(frozen=True)
class Source:
    """One file's text and syntax tree."""

    file: str
    lines: tuple[str, ...] = ()
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []))

    def line(self, number: int) -> str:
        """The text of line `number`, stripped; "" where there is none."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def text_of(self, node: ast.AST) -> str:
        """The source text of `node` as one line, in the user's own spelling where that can be."""
        found = self.exact_text(node)
        return (on_one_line(found) if "\n" in found else found) or ast.unparse(node)

    def exact_text(self, node: ast.AST) -> str:
        """The source text of `node` as it stands there, over several lines too."""
        line, end_line = getattr(node, "lineno", 0), getattr(node, "end_lineno", None) or 0
        if not 0 < line <= end_line <= len(self.lines):
            return ast.unparse(node)
        lines = [text.encode() for text in self.lines[line - 1 : end_line]]
        lines[-1] = lines[-1][: getattr(node, "end_col_offset", None)]
        lines[0] = lines[0][getattr(node, "col_offset", 0) :]
        return b"".join(lines).decode()

    def statement_at(self, line: int) -> ast.stmt | None:
        """The innermost statement that line `line` belongs to; of a compound statement only its header."""
        best: ast.stmt | None = None
        for node in self._statements:
            if _first_line(node) <= line <= _last_line(node) and (best is None or node.lineno >= best.lineno):
                best = node
        return best

    def node_at(self, position: tuple[int, int, int, int]) -> ast.expr | ast.stmt | None:
        """The expression or simple statement at `position`: line, end line, column, end column, in bytes as in `ast`.

        Python's positions of a call in a chain over several lines begin at the attribute, not at the expression: then
        the smallest expression that ends there and covers the position is meant.
        """
        line, end_line, column, end_column = position
        best: ast.expr | ast.stmt | None = None
        nodes: list[ast.expr | ast.stmt] = [*self._simple_statements, *self._expressions]
        for node in nodes:
            if (node.end_lineno, node.end_col_offset) != (end_line, end_column):
                continue
            if (node.lineno, node.col_offset) > (line, column):
                continue
            if best is None or (node.lineno, node.col_offset) > (best.lineno, best.col_offset):
                best = node
        return best

    def function_at(self, line: int, name: str | None = None) -> Function | None:
        """The innermost function (called `name`, where given) whose text covers `line`."""
        best: Function | None = None
        for node in self._functions:
            if name is not None and _name_of(node) != name:
                continue
            if _first_line(node) <= line <= (node.end_lineno or line) and (best is None or node.lineno >= best.lineno):
                best = node
        return best

    def functions_around(self, line: int) -> list[Function]:
        """All functions whose text covers `line`, outermost first."""
        found = [node for node in self._functions if _first_line(node) <= line <= (node.end_lineno or line)]
        return sorted(found, key=lambda node: (node.lineno, -(node.end_lineno or 0)))

    def loops_around(self, line: int) -> list[Loop]:
        """The loops whose bodies hold `line`, outermost first; not those around the function that it is in."""
        functions = [node for node in self.functions_around(line) if not isinstance(node, ast.Lambda)]
        first = functions[-1].lineno if functions else 0
        found = [node for node in self._loops if node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)]
        return sorted((node for node in found if node.lineno >= first), key=lambda node: node.lineno)

    def class_at(self, line: int) -> ast.ClassDef | None:
        """The innermost class whose text covers `line`."""
        found = [node for node in self._classes if node.lineno <= line <= (node.end_lineno or line)]
        return max(found, key=lambda node: node.lineno, default=None)

    def class_named(self, qualified_name: str) -> ast.ClassDef | None:
        """The class with that name, e.g. "Net" of a type whose `__qualname__` is "make.<locals>.Net"."""
        name = qualified_name.rpartition(".")[2]
        return next((node for node in self._classes if node.name == name), None)

    def functions_named(self, name: str) -> list[Function]:
        """Every function and method called `name`."""
        return [node for node in self._functions if _name_of(node) == name]

    @functools.cached_property
    def _nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @functools.cached_property
    def _statements(self) -> list[ast.stmt]:
        return [node for node in self._nodes if isinstance(node, ast.stmt)]

    @functools.cached_property
    def _simple_statements(self) -> list[ast.stmt]:
        return [node for node in self._statements if not isinstance(node, _COMPOUND)]

    @functools.cached_property
    def _expressions(self) -> list[ast.expr]:
        return [node for node in self._nodes if isinstance(node, ast.expr)]

    @functools.cached_property
    def _functions(self) -> list[Function]:
        return [node for node in self._nodes if isinstance(node, Function)]

    @functools.cached_property
    def _loops(self) -> list[Loop]:
        return [node for node in self._nodes if isinstance(node, Loop)]

    @functools.cached_property
    def _classes(self) -> list[ast.ClassDef]:
        return [node for node in self._nodes if isinstance(node, ast.ClassDef)]


def read_source(file: str) -> Source:
    """The source of `file`, from memory where it was read before and has not changed."""
    path = Path(file)
    # A pasted text may name anything, and reading a pipe or a device would not end.
    lines = [] if path.exists() and not path.is_file() else linecache.getlines(file)
    return _parse(file, tuple(lines))


@functools.lru_cache(maxsize=64)
def _parse(file: str, lines: tuple[str, ...]) -> Source:
    try:
        return Source(file, lines, ast.parse("".join(lines)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Source(file, lines)


def expressions_of(statement: ast.stmt) -> Iterator[ast.expr]:
    """All expressions of `statement`, those in others too, without those of the statements inside it."""
    nodes: list[ast.AST] = [statement]
    while nodes:
        for node in ast.iter_child_nodes(nodes.pop()):
            if not isinstance(node, ast.stmt):
                nodes.append(node)
            if isinstance(node, ast.expr):
                yield node


def _first_line(node: ast.stmt | Function) -> int:
    """The line of the first decorator, where there is one."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _last_line(node: ast.stmt) -> int:
    """The last line of a simple statement, or of a compound statement's header."""
    if isinstance(node, _COMPOUND):
        body = getattr(node, "body", None) or getattr(node, "cases", None)
        if body:
            first = body[0]
            start = _first_line(first) if isinstance(first, ast.stmt) else node.lineno + 1
            return max(node.lineno, start - 1)
    return node.end_lineno or node.lineno


def _name_of(node: Function) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name
