"""Which expression of a line was running.

Since Python 3.11 each instruction knows its columns. Python 3.10 records lines alone: there the source is compiled
again with a line of its own for each expression of the statement, and the same instruction of the same code tells by
its line which expression it belongs to. Compiles only; runs nothing.
"""

from __future__ import annotations
import __future__

import ast
import itertools
from collections.abc import Iterator
from types import CodeType
from typing import TypeAlias

from samedevice.explaining.sources import Source, expressions_of

__all__ = ["Position", "position_of"]

Position: TypeAlias = "tuple[int, int, int, int]"
"""Line, end line, column and end column, in bytes as in `ast`."""

_FUTURES = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})


def position_of(code: CodeType, instruction: int, line: int, source: Source) -> Position | None:
    """The position of an instruction's expression.

    Args:
        code: the code of a frame.
        instruction: where in it, as `tb_lasti` says.
        line: its line.
        source: the source that the code was compiled from.

    Returns:
        None where Python did not record it and it cannot be found anew.
    """
    if instruction < 0:
        return None
    if not hasattr(code, "co_positions"):
        return _found_anew(code, instruction, line, source)
    found = next(itertools.islice(code.co_positions(), instruction // 2, None), None)
    if found is None or any(part is None for part in found):
        return None
    first, last, column, end_column = found
    return (first, last, column, end_column)


def _found_anew(code: CodeType, instruction: int, line: int, source: Source) -> Position | None:
    statement = source.statement_at(line)
    if statement is None:
        return None
    expressions = list(expressions_of(statement))
    first = len(source.lines) + 1
    try:
        module = _compiled(source, expressions, first, code.co_flags & _FUTURES)
    except (SyntaxError, ValueError, RecursionError):  # the file was changed meanwhile
        return None
    found = set()
    for again in _codes(module):
        began = again.co_firstlineno
        began = began if began < first else expressions[began - first].lineno
        if (again.co_name, began, again.co_code) == (code.co_name, code.co_firstlineno, code.co_code):
            found.add(_line_of(again, instruction))
    number = found.pop() if len(found) == 1 else None
    if number is None or number < first:
        return None
    node = expressions[number - first]
    return (node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or node.col_offset)


def _compiled(source: Source, expressions: list[ast.expr], first: int, flags: int) -> CodeType:
    """The source compiled with the lines `first` and following for `expressions`, in their order."""
    tree = ast.parse("".join(source.lines))
    numbers = {id(node): number for number, node in enumerate(expressions, first)}
    calls = []
    for node, copy in zip(ast.walk(source.tree), ast.walk(tree), strict=True):
        number = numbers.get(id(node))
        if number is not None and isinstance(copy, ast.expr):
            copy.lineno = copy.end_lineno = number
            calls += [copy] if isinstance(copy, ast.Call) else []
    for call in calls:
        # The call of a method stands in the last line of the method's name.
        call.func.end_lineno = call.lineno
    code: CodeType = compile(tree, source.file, "exec", flags, dont_inherit=True)
    return code


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _line_of(code: CodeType, instruction: int) -> int | None:
    return next((line for start, end, line in code.co_lines() if start <= instruction < end), None)
