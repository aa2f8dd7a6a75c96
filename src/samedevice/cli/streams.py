"""Standard output as the commands want it. Loaded with every command, so it loads nothing."""

from __future__ import annotations

import io

TYPE_CHECKING = False  # as type checkers know it

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["print_anything"]


def print_anything(stream: TextIO | None) -> None:
    """Have `stream` spell out what its encoding does not have, as standard error does, instead of failing.

    Not for a program that is run: its standard output is to be as python has it.
    """
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
