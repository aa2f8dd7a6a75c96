"""The linter as a plugin of flake8, which selects, silences and prints in its own way.

Faults come under `SD`, on by default; smells under `SD3`, on with `--enable-extensions SD3`. flake8 imports this module
on every run, so it loads the rules with the first file that mentions torch.

Source: flake8's documentation, "Writing Plugins for Flake8", 5.0 to 7.5.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import samedevice
from samedevice.texts import shown

__all__ = ["Faults", "Smells"]

_Problem = tuple[int, int, str, type]


class Faults:
    """What flake8 makes for each file, and asks for problems."""

    name = "samedevice"
    version = samedevice.__version__
    off_by_default = False
    _smells = False

    def __init__(self, tree: ast.AST, filename: str, lines: list[str]) -> None:
        """Take a file as flake8 has read it.

        Args:
            tree: not used: it is the text that is checked, and other plugins may have changed the tree.
            filename: its name, "stdin" for standard input.
            lines: its lines with their ends.
        """
        self._file = filename
        self._text = "".join(lines)

    def run(self) -> Iterator[_Problem]:
        """Line, column from 0, text with the code, and the plugin, for each problem."""
        if "torch" not in self._text:
            return
        from samedevice.linting.checking import check
        from samedevice.linting.source import SourceError

        try:
            findings = check(self._text, self._file, faults=not self._smells, smells=self._smells).findings
        except SourceError:  # flake8 names what is no Python by itself
            return
        for finding in findings:
            at = finding.location
            if at is not None:
                yield at.line, (at.column or 1) - 1, f"{finding.code} {shown(finding.message)}", type(self)


class Smells(Faults):
    """The same for device smells."""

    name = "samedevice-smells"
    off_by_default = True
    _smells = True
