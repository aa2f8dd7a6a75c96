"""How the user spelled an expression, read from its tokens, so that no literal is ever touched."""

from __future__ import annotations

import io
import tokenize

__all__ = ["on_one_line", "place_for_argument"]

_LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}", ".")


def on_one_line(text: str) -> str | None:
    """The expression `text` without its line breaks and comments; None where a literal spans lines."""
    tokens = _tokens(text)
    # A string's token (or, from Python 3.12, an f-string's part) that ends on another line holds that line's break.
    if not tokens or any(token.start[0] != token.end[0] for token in tokens if token.type not in _LAYOUT):
        return None
    lines = f"({text}\n)".split("\n")
    for token in tokens:
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    lines[0], lines[-1] = lines[0][1:], lines[-1][:-1]
    found = ""
    for part in (line.strip().removesuffix("\\").rstrip() for line in lines):
        tight = not found or found.endswith(_OPENING) or part.startswith(_CLOSING)
        found += part if tight or not part else f" {part}"
    return found


def place_for_argument(call: str) -> tuple[int, int, bool] | None:
    """Where one more argument of the call `call` goes: behind the last one, before a trailing comma or a comment.

    Args:
        call: the text of a call, its brackets included.

    Returns:
        Line and column within the text, both from 0, and whether arguments stand before it; None for no call.
    """
    tokens = [token for token in _tokens(call) if token.type not in _LAYOUT]
    if len(tokens) < 4 or tokens[-2].string != ")":
        return None
    last = tokens[-4] if tokens[-3].string == "," else tokens[-3]
    row, column = last.end
    return row - 1, column - (row == 1), last.string != "("


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    # In brackets, as an expression over several lines has to be; behind a line break, a last comment ends.
    try:
        return list(tokenize.generate_tokens(io.StringIO(f"({text}\n)").readline))
    except (tokenize.TokenError, SyntaxError):
        return []
