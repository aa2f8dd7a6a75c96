"""Reading a source file: bytes to text as Python does it, text to a tree, and places in the tree back to text."""

from __future__ import annotations

import functools
import io
import os
import stat
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from samedevice.errors import SameDeviceError
from samedevice.findings import Location
from samedevice.texts import say

if TYPE_CHECKING:
    import ast

__all__ = ["Source", "SourceError", "decode", "encoding_of", "lines_of", "mentions_torch", "parse", "read", "tree_of"]

_LARGEST = 20_000_000


class SourceError(SameDeviceError):
    """A file that cannot be read or parsed; the text says why and, where known, in which line."""


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed file."""

    file: str
    text: str
    tree: ast.Module
    lines: tuple[str, ...]
    """The lines without their ends."""

    def line(self, number: int) -> str:
        """The text of a line, counted from 1; empty past the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def indent(self, number: int) -> int:
        """How many characters of white space line `number` begins with."""
        line = self.line(number)
        return len(line) - len(line.lstrip())

    def column(self, number: int, offset: int) -> int:
        """The index in the text of line `number` for an offset in its UTF-8 bytes, which is what `ast` counts in."""
        line = self.line(number)
        return offset if line.isascii() else len(line.encode()[:offset].decode(errors="ignore"))

    def segment(self, node: ast.AST) -> str:
        """The text of an expression or statement, as written."""
        start, end = self.span(node)
        if start[0] == end[0]:
            return self.line(start[0])[start[1] : end[1]]
        middle = [self.line(number) for number in range(start[0] + 1, end[0])]
        return "\n".join([self.line(start[0])[start[1] :], *middle, self.line(end[0])[: end[1]]])

    def span(self, node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
        """Line and column where a node begins and ends; lines from 1, columns from 0, in characters."""
        line: int = getattr(node, "lineno", 1)
        end_line: int = getattr(node, "end_lineno", None) or line
        end_offset: int = getattr(node, "end_col_offset", None) or 0
        return (line, self.column(line, getattr(node, "col_offset", 0))), (end_line, self.column(end_line, end_offset))

    def location(self, node: ast.AST, function: str | None) -> Location:
        """The place of a node as a finding has it: lines and columns from 1, in characters.

        Args:
            node: an expression or statement.
            function: what the function around it is called; None outside of functions.
        """
        (line, column), (end_line, end_column) = self.span(node)
        return Location(
            self.file,
            line,
            function,
            column + 1,
            end_line,
            end_column + 1,
            self.line(line).strip(),
            source_column=self.indent(line) + 1,
        )


def read(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        SourceError: it cannot be read, is no file (a pipe would be waited for), or is too large to be source.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            os.scandir(path).close()  # says why it could not be opened
            raise SourceError(say("cannot be read: it is a folder"))
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(say("cannot be read: it is no regular file"))
        if status.st_size > _LARGEST:
            raise SourceError(say("larger than {size} MB; not read", size=_LARGEST // 1_000_000))
        return path.read_bytes()
    except OSError as error:
        raise SourceError(say("cannot be read: {reason}", reason=error.strerror or str(error))) from None
    except ValueError as error:  # a null byte in the name
        raise SourceError(say("cannot be read: {reason}", reason=str(error))) from None


def encoding_of(data: bytes) -> str:
    """The encoding of a source file; "utf-8-sig" where it begins with a byte order mark.

    Raises:
        SyntaxError: it names one that is none, or contradicts its byte order mark.
    """
    import tokenize  # for a file that has to do with torch, and few have

    return tokenize.detect_encoding(io.BytesIO(data).readline)[0]


def decode(data: bytes) -> str:
    """The text of a source file, by its byte order mark or its coding comment, else as UTF-8.

    Raises:
        SourceError: the bytes are no text in that encoding.
    """
    try:
        return data.decode(encoding_of(data))
    except (SyntaxError, ValueError, LookupError) as error:
        raise SourceError(say("cannot be decoded: {error}", error=str(error))) from None
    except Exception as error:  # some of the codecs that a comment may name raise their own kind
        raise SourceError(say("cannot be decoded: {error}", error=f"{type(error).__name__}: {error}")) from None


def mentions_torch(data: bytes) -> bool:
    """Whether a file has anything to do with torch; most of a large tree has not, and need not be parsed."""
    return b"torch" in data


def parse(text: str, file: str, *, flags: int = 0) -> Source:
    """The syntax tree of `text`.

    Args:
        text: Python source.
        file: its name, for locations.
        flags: for the compiler, such as the one that lets a notebook await outside of functions.

    Returns:
        The text with its tree.

    Raises:
        SourceError: it is no Python that this interpreter reads, or too deeply nested.
    """
    try:
        tree = tree_of(text, file, flags=flags)
    except SyntaxError as error:
        if not error.lineno:
            raise SourceError(error.msg) from None
        raise SourceError(say("line {line}: {error}", line=error.lineno, error=error.msg)) from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise SourceError(say("cannot be parsed: {error}", error=str(error) or type(error).__name__)) from None
    return Source(file, text, tree, lines_of(text))


_QUIET = threading.Lock()
"""What is done with a warning is the process's affair: two threads would put back one another's setting."""


def tree_of(text: str | bytes, file: str = "<unknown>", *, flags: int = 0) -> ast.Module:
    """The syntax tree of `text`, without the warnings that Python has for it.

    Args:
        text: Python source.
        file: its name, for errors.
        flags: for the compiler, besides those that make it stop at the tree.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, LookupError: it is none that Python parses.
    """
    import ast

    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cast("ast.Module", compile(text, file, "exec", ast.PyCF_ONLY_AST | flags, dont_inherit=True))


@functools.lru_cache(maxsize=2)
def lines_of(text: str) -> tuple[str, ...]:
    """Lines as `ast` counts them: split at line feeds and carriage returns only, never at a form feed."""
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
