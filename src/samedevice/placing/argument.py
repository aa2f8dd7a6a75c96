"""What the caller calls its own data: the text of the first argument, read from the source after something failed."""

from __future__ import annotations

import ast
import linecache
from types import FrameType

__all__ = ["argument_text"]


def argument_text(frame: FrameType | None, function: str, default: str = "batch") -> str:
    """The expression that was passed to `function` on the line where `frame` stands.

    Args:
        frame: the frame that called the function.
        function: its name, however it was imported.
        default: what to say where the source is not at hand, the line holds several such calls, or the argument is
            itself a call or a literal.

    Returns:
        A name, attribute or subscript such as `self.batch`, else `default`.
    """
    if frame is None:
        return default
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError):
        return default
    found = [argument for node in nodes if (argument := _first_argument(node, function, frame.f_lineno))]
    if len(found) != 1 or not isinstance(found[0], (ast.Name, ast.Attribute, ast.Subscript)):
        return default
    return ast.get_source_segment(source, found[0]) or default


def _first_argument(node: ast.AST, function: str, line: int) -> ast.expr | None:
    if not isinstance(node, ast.Call) or not node.lineno <= line <= (node.end_lineno or node.lineno) or not node.args:
        return None
    called = getattr(node.func, "attr", getattr(node.func, "id", None))
    return node.args[0] if called == function else None
