"""What the commands share: a parser that raises `UsageError`, files that are written whole, colours where they help.

argparse's own few sentences are said here in the reader's language; what it says besides stays in English.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from samedevice.cli.streams import print_anything
from samedevice.errors import UsageError
from samedevice.texts import Text, say, shown

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

__all__ = ["SIMULATE", "Parser", "colours", "split_program", "write"]


SIMULATE = say("run on N simulated devices: cuda, cuda:2, mps, xpu …")
"""The help of `--simulate`."""


class Parser(argparse.ArgumentParser):
    """argparse with one clear line for a wrong argument, and the examples printed as they are written."""

    def __init__(self, command: str, description: str, examples: str) -> None:
        super().__init__(
            prog=f"samedevice {command}",
            description=shown(description),
            epilog=f"{shown(say('examples:'))}\n{shown(examples)}",
            formatter_class=_Formatter,
            allow_abbrev=False,
            add_help=False,
        )
        self._positionals.title = shown(say("positional arguments"))
        self._optionals.title = shown(say("options"))
        self.add_argument("-h", "--help", action="help", help=shown(say("show this help message and exit")))

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help, on any console."""
        print_anything(sys.stdout)
        super().print_help(file)

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`; `main` prints it and exits with 2."""
        raise UsageError(_said(message))


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as argparse prints it, its widths counted in columns.

    Source: Lib/argparse.py, `HelpFormatter._split_lines` and `add_usage`, 3.10 to 3.14.
    """

    def __init__(self, prog: str, **how: Any) -> None:
        # Each option makes a formatter, which would import shutil to measure the terminal.
        how.setdefault("width", _columns() - 2)
        super().__init__(prog, **how)

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, shown(say("usage: ")) if prefix is None else prefix)

    def _split_lines(self, text: str, width: int) -> list[str]:
        from samedevice.reports.columns import wrap  # with it come the renderers, and few ask for help

        return wrap(text, width)


def _columns() -> int:
    """How wide the terminal is, by the variable that says so, or as it is."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else 80
    except (OSError, ValueError, AttributeError):
        return 80


_SENTENCES: dict[str, Callable[..., Text]] = {
    "unrecognized arguments: (?P<given>.*)": lambda given: say("unrecognized arguments: {given}", given=given),
    "the following arguments are required: (?P<names>.*)": lambda names: say(
        "the following arguments are required: {names}", names=names
    ),
    "argument (?P<name>.*?): expected one argument": lambda name: say(
        "argument {name}: expected one argument", name=name
    ),
    r"argument (?P<name>.*?): invalid choice: (?P<given>.*) \(choose from (?P<choices>.*)\)": lambda **values: say(
        "argument {name}: invalid choice: {given} (choose from {choices})", **values
    ),
    "argument (?P<name>.*?): not allowed with argument (?P<other>.*)": lambda **values: say(
        "argument {name}: not allowed with argument {other}", **values
    ),
}
"""What argparse says, as `Parser.error` gets it, and the same sentence of ours.

Source: Lib/argparse.py, 3.10 to 3.14.
"""


def _said(message: str) -> str:
    for pattern, sentence in _SENTENCES.items():
        if match := re.fullmatch(pattern, message, re.DOTALL):
            return sentence(**match.groupdict())
    return message


def split_program(arguments: list[str], valued: set[str]) -> tuple[list[str], list[str]]:
    """Split a command's own options from the program that it runs and that program's arguments.

    Args:
        arguments: e.g. `["--json", "r.json", "train.py", "--epochs", "3"]`.
        valued: those of our options that take a value in the next argument.

    Returns:
        Our options, and the rest from the script or `-m` on: as `python` does, everything after it is the script's.

    Raises:
        UsageError: the program is to come from standard input.
    """
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        if argument == "-":
            raise UsageError(say("a program from standard input has no lines to point at: save it to a file"))
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
        raise UsageError(say("cannot write {file}: {reason}", file=path, reason=error.strerror or str(error))) from None


def colours(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that shows colours and nobody asked for none.

    Source: no-color.org: a NO_COLOR that is not empty switches colours off.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and sys.platform != "win32")
