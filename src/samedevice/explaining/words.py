"""What a name says: its words, whether it is written with underscores or capitals.

A name is a hint, never a proof: `email` has no `ema` in it, and a variable called `slow` may be anything.
"""

from __future__ import annotations

import re

__all__ = ["words_of"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of(name: str) -> list[str]:
    """The words of `name` in small letters: "EMAHelper", "ema_helper" and "emaHelper" give ["ema", "helper"]."""
    return [word.lower() for word in _WORD.findall(name)]
