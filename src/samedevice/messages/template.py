"""One text of PyTorch with named places for its values: filled in to raise it, turned round to recognise it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["PLACE_PATTERNS", "Template", "place_pattern"]

_PLACE = re.compile(r"\{(\w+)\}")

PLACE_PATTERNS = {
    "argument": r"[A-Za-z_]\w*",
    "method": r"\w+",
    "function": r"[A-Za-z_][\w.:]*",
    "index": r"-?\d+",
    "count": r"\d+",
    "type": r"[A-Za-z_][\w.:]*(?:<[\w.]+>)?",
    "backend": r"[A-Za-z]\w*",
    "device": r"[a-z][a-z0-9]*(?::\d+)?",
}
"""What may stand in a place, by the last word of its name: `{other_device}` is a device."""
_ANY_TEXT = r"[^\n]+?"


@dataclass(frozen=True, slots=True)
class Template:
    """One wording of one message; a place for a value is written `{name}`."""

    kind: str
    """The stable name of what happened, shared by all wordings."""
    text: str
    exception: str = "RuntimeError"
    since: tuple[int, int] = (0, 0)
    """The first version of torch that says it so, where that is known."""
    until: tuple[int, int] | None = None
    """The first version that no longer does."""
    places: tuple[tuple[str, str], ...] = ()
    """What is where: (operand, name of the place that holds its device, or "=" and the device itself).

    `{name}` takes the operand from a place; a place may also hold a tensor's type or a backend.
    """
    cause: str | None = None
    """Slug of the cause, where the message alone settles it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its places in the order in which they first occur."""
        return tuple(dict.fromkeys(_PLACE.findall(self.text)))

    def spoken_by(self, version: tuple[int, int]) -> bool:
        """Whether this version of torch words it so."""
        return self.since <= version and (self.until is None or version < self.until)

    def fill(self, values: Mapping[str, object]) -> str:
        """The message with `values` in their places.

        Raises:
            KeyError: A place has no value.
        """
        return _PLACE.sub(lambda match: str(values[match[1]]), self.text)

    def pattern(self) -> re.Pattern[str]:
        """Finds the message in a larger text, one group for each name; white space may differ."""
        return _pattern(self.text)

    def may_stand_in(self, text: str) -> bool:
        """Whether the longest literal word of the message stands in `text`: a look that costs next to nothing."""
        return _longest_word(self.text) in text


@functools.cache
def _longest_word(text: str) -> str:
    return max(_PLACE.sub(" ", text).split(), key=len, default="")


@functools.cache
def _pattern(text: str) -> re.Pattern[str]:
    # A value at the very beginning begins a word; else each letter of a long word would be tried as its first.
    parts: list[str] = [r"(?<!\w)"] if text.startswith("{") else []
    seen: set[str] = set()
    end = 0
    for match in _PLACE.finditer(text):
        name = match[1]
        parts += [_literal(text[end : match.start()]), f"(?P={name})" if name in seen else _group(name)]
        seen.add(name)
        end = match.end()
    # A value at the very end runs to the end of its line.
    parts.append(_literal(text[end:]) or r"(?=\s|$)")
    return re.compile("".join(parts))


def _literal(text: str) -> str:
    return r"\s+".join(map(re.escape, re.split(r"\s+", text)))


def _group(name: str) -> str:
    return f"(?P<{name}>{place_pattern(name)})"


def place_pattern(name: str) -> str:
    """The regular expression of what may stand in the place called `name`."""
    return PLACE_PATTERNS.get(name.rsplit("_", 1)[-1], _ANY_TEXT)
