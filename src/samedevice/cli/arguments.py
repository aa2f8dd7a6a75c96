"""What the commands share: a parser that raises `UsageError`, files that are written whole, colours where they help."""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from samedevice.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

__all__ = ["Parser", "colours", "print_anything", "split_program", "write"]


class Parser(argparse.ArgumentParser):
    """argparse with one clear line for a wrong argument, and the examples printed as they are written."""

    def __init__(self, command: str, description: str, examples: str) -> None:
        super().__init__(
            prog=f"samedevice {command}",
            description=description,
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help, on any console."""
        print_anything(sys.stdout)
        super().print_help(file)

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`; `main` prints it and exits with 2."""
        raise UsageError(message)


def print_anything(stream: TextIO | None) -> None:
    """Have `stream` spell out what its encoding does not have, as standard error does, instead of failing.

    Not for a program that is run: its standard output is to be as python has it.
    """
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def split_program(arguments: list[str], valued: set[str]) -> tuple[list[str], list[str]]:
    """Split a command's own options from the program that it runs and that program's arguments.

    Args:
        arguments: e.g. `["--json", "r.json", "train.py", "--epochs", "3"]`.
        valued: those of our options that take a value in the next argument.

    Returns:
        Our options, and the rest from the script or `-m` on: as `python` does, everything after it is the script's.
    """
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        if argument == "--":
            return arguments[:position], arguments[position + 1 :]
        if argument == "-m" or not argument.startswith("-"):
            break
        position += 2 if argument in valued else 1
    return arguments[:position], arguments[position:]


def write(path: str, text: str) -> None:
    """Write a report.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def colours(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that shows colours and nobody asked for none.

    Source: no-color.org: a NO_COLOR that is not empty switches colours off.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and sys.platform != "win32")
