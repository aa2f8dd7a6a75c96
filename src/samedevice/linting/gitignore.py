"""Which paths git ignores, by the `.gitignore` files of a checkout. Matches patterns as git does and does no more.

Paths are bytes, as they are to git: `?` and `[…]` stand for one byte. Not read: the user's own excludes file, which is
no part of the project.

Source: gitignore(5), "Pattern format", and what `git check-ignore` answers (git 2.30 to 2.50).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Pattern", "inherited", "is_ignored", "parse", "patterns_in"]

_NEVER = b"(?!)"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_CLASSES = {
    b"alnum": _LETTERS + _DIGITS,
    b"alpha": _LETTERS,
    b"blank": " \t",
    b"cntrl": "".join(map(chr, [*range(32), 127])),
    b"digit": _DIGITS,
    b"graph": "".join(map(chr, range(33, 127))),
    b"lower": _LETTERS[26:],
    b"print": "".join(map(chr, range(32, 127))),
    b"punct": "".join(c for c in map(chr, range(33, 127)) if not c.isalnum()),
    b"space": " \t\n\r\v\f",
    b"upper": _LETTERS[:26],
    b"xdigit": _DIGITS + "abcdefABCDEF",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of a `.gitignore` file."""

    folder: bytes
    """The folder of the file, absolute, ending in a slash."""
    expression: re.Pattern[bytes]
    negated: bool
    folders_only: bool
    anchored: bool
    """Whether it speaks of the whole path below `folder`, not of a name at any depth."""

    def matches(self, path: bytes, *, is_folder: bool) -> bool:
        """Whether the line speaks of `path`, which is absolute."""
        if (self.folders_only and not is_folder) or not path.startswith(self.folder):
            return False
        text = path[len(self.folder) :] if self.anchored else path.rpartition(b"/")[2]
        return self.expression.match(text) is not None


def is_ignored(patterns: tuple[Pattern, ...], path: str | os.PathLike[str], *, is_folder: bool) -> bool:
    """Whether git ignores `path`, given that it does not ignore the folder that it is in.

    Args:
        patterns: the lines that hold there, those of deeper folders last.
        path: absolute.
        is_folder: whether it is a folder and no link to one.
    """
    if not patterns:
        return False
    data = _bytes(path)
    last = next((each for each in reversed(patterns) if each.matches(data, is_folder=is_folder)), None)
    return last is not None and not last.negated


def inherited(folder: Path) -> tuple[Pattern, ...]:
    """The lines that hold in `folder` by the folders above it, up to the root of its checkout; none outside of one."""
    above: list[Path] = []
    for parent in (folder, *folder.parents):
        above.append(parent)
        if (parent / ".git").exists():
            lines = tuple(_read(parent / ".git" / "info" / "exclude", parent))
            for each in reversed(above[1:]):
                lines += patterns_in(each)
            return lines
    return ()


def patterns_in(folder: Path) -> tuple[Pattern, ...]:
    """The lines of the `.gitignore` file of `folder`, if there is one."""
    return tuple(_read(folder / ".gitignore", folder))


def _read(file: Path, folder: Path) -> list[Pattern]:
    try:
        data = file.read_bytes()
    except OSError:
        return []
    return parse(data, folder)


def parse(data: bytes, folder: str | os.PathLike[str]) -> list[Pattern]:
    """The patterns in the bytes of a `.gitignore` file that lies in `folder`, which is absolute."""
    base = _bytes(folder).rstrip(b"/") + b"/"
    lines = (line.removesuffix(b"\r") for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    return [_pattern(line, base) for line in map(_without_spaces, lines) if line and not line.startswith(b"#")]


def _bytes(path: str | os.PathLike[str]) -> bytes:
    return os.fsencode(path).replace(os.fsencode(os.sep), b"/")


def _without_spaces(line: bytes) -> bytes:
    """Without the spaces at its end, of which one after a backslash is no part."""
    kept = re.match(rb"(?:\\.|[^ \\]| +(?=[^ ]))*", line, re.DOTALL)
    end = kept.end() if kept else 0
    return line if line[end:].strip(b" ") else line[:end]


def _pattern(line: bytes, folder: bytes) -> Pattern:
    negated = line.startswith(b"!")
    line = line[1:] if negated else line
    folders_only = line.endswith(b"/")
    line = line[:-1] if folders_only else line
    anchored = b"/" in line
    line = line.removeprefix(b"/")
    expression = re.compile(_expression(line) + rb"\Z" if line else _NEVER, re.DOTALL)
    return Pattern(folder, expression, negated, folders_only, anchored)


def _expression(pattern: bytes) -> bytes:
    """A git pattern as a regular expression."""
    parts: list[bytes] = []
    at = 0
    while at < len(pattern):
        part, at = _part(pattern, at)
        parts.append(part)
    return b"".join(parts)


def _part(pattern: bytes, at: int) -> tuple[bytes, int]:
    """What stands at `at` as a regular expression, and where the next part begins."""
    char = pattern[at : at + 1]
    if char == b"*":
        return _stars(pattern, at)
    if char == b"?":
        return b"[^/]", at + 1
    if char == b"[":
        return _bracket(pattern, at)
    if char == b"\\":
        following = pattern[at + 1 : at + 2]
        return (re.escape(following), at + 2) if following else (_NEVER, at + 1)
    return re.escape(char), at + 1


def _stars(pattern: bytes, at: int) -> tuple[bytes, int]:
    """`*` stops at a slash; `**` between slashes does not, and `**/` may stand for nothing.

    Git compares what precedes the first special character by itself, so that the first `**` is always at a beginning.
    """
    end = at
    while pattern[end : end + 1] == b"*":
        end += 1
    rest = pattern[end:]
    begins = pattern[at - 1 : at] == b"/" or not re.search(rb"[*?\[\\]", pattern[:at])
    between = begins and (not rest or rest.startswith((b"/", b"\\/")))
    if end - at < 2 or not between:
        return b"[^/]*", end
    if rest.startswith(b"/"):
        return b"(?:.*/)?", end + 1
    return b".*", end


def _bracket(pattern: bytes, at: int) -> tuple[bytes, int]:
    """`[a-z]`, `[!a]`, `[[:digit:]]`: never a slash; one that is not closed matches nothing."""
    at += 1
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    previous = -1
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        found = _member(pattern, at, previous)
        if found is None:
            return _NEVER, len(pattern)
        added, previous, at = found
        members |= added
    chosen = (set(range(256)) - members if negated else members) - {ord("/")}
    listed = b"".join(b"\\x%02x" % each for each in sorted(chosen))
    return (b"[" + listed + b"]" if listed else _NEVER), at + 1


def _member(pattern: bytes, at: int, previous: int) -> tuple[set[int], int, int] | None:
    """The bytes that one member of a set names, the start of a range that may follow, and what comes next."""
    char = pattern[at : at + 1]
    if not char:
        return None
    if char == b"\\":
        escaped = pattern[at + 1 : at + 2]
        return ({escaped[0]}, escaped[0], at + 2) if escaped else None
    if char == b"-" and previous > 0 and pattern[at + 1 : at + 2] not in (b"", b"]"):
        at += 2 if pattern[at + 1 : at + 2] == b"\\" else 1
        end = pattern[at : at + 1]
        return (set(range(previous, end[0] + 1)), -1, at + 1) if end else None
    if pattern[at : at + 2] == b"[:":
        return _class(pattern, at)
    return {char[0]}, char[0], at + 1


def _class(pattern: bytes, at: int) -> tuple[set[int], int, int] | None:
    end = pattern.find(b"]", at + 2)
    if end < 0:
        return None
    if end < at + 3 or pattern[end - 1 : end] != b":":
        return {ord("[")}, ord("["), at + 1
    known = _CLASSES.get(pattern[at + 2 : end - 1])
    return None if known is None else (set(known.encode()), -1, end + 1)
