"""Text in columns of a terminal, where a Chinese character takes two: measured, wrapped, padded, cut.

Lines of one language may hold words of another: Chinese prose breaks between any two characters, code and English only
at spaces. Knows nothing of reports.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["cut", "fitting", "pad", "width", "wrap"]

_OPENING = "（《〈【〔「『“‘"
_CLOSING = "，。、；：！？）》〉】〕」』”’"
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60"
_PIECE = rf"\s+|[{_OPENING}]*(?:[{_WIDE}]|[^\s{_WIDE}{_OPENING}{_CLOSING}]+)?[{_CLOSING}]*"
"""What no line break goes into: a word, or a wide character with the punctuation that stays with it."""


def width(text: str) -> int:
    """How many columns `text` takes.

    Source: Unicode Standard Annex 11; what it calls ambiguous is one column wide, as in most terminals.
    """
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, columns: int) -> str:
    """`text` with spaces after it, at least `columns` wide."""
    return text + " " * (columns - width(text))


def cut(text: str, columns: int) -> str:
    """`text` in at most `columns`: of a longer one the beginning and the end, with "…" between them."""
    if width(text) <= columns:
        return text
    tail = (columns - 1) // 3
    end = fitting(text[::-1], tail)[::-1].lstrip()
    return f"{fitting(text, columns - 1 - width(end)).rstrip()}…{end}"


def fitting(text: str, columns: int) -> str:
    """As much of the beginning of `text` as fits."""
    taken = 0
    for position, character in enumerate(text):
        taken += _columns(character)
        if taken > columns:
            return text[:position]
    return text


def wrap(text: str, columns: int, *, first: str = "", later: str = "") -> list[str]:
    """`text` in lines of at most `columns`; a word that is longer stands on a line of its own.

    Args:
        text: any; its line breaks count as spaces.
        columns: how wide the lines may be.
        first: what the first line begins with.
        later: what the others begin with.

    Returns:
        The lines, at least one.
    """
    lines, line, gap = [], first, ""
    started = False
    for piece in _pieces(text):
        if piece.isspace():
            gap = " " * len(piece) if started else ""
        elif started and width(line) + width(gap) + width(piece) > columns:
            lines.append(line)
            line, gap = later + piece, ""
        else:
            line, gap, started = line + gap + piece, "", True
    return [*lines, line if started else line.rstrip()]


def _pieces(text: str) -> Iterator[str]:
    return (match[0] for match in re.finditer(_PIECE, text) if match[0])
