"""`samedevice doctor`: what this machine can do."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from samedevice.cli.arguments import Parser, colours
from samedevice.doctor import examine

__all__ = ["main"]

_EXAMPLES = """\
  samedevice doctor
  samedevice doctor --format json

exit status: 0 all in order, 1 something is wrong."""
_SIGNS = {"ok": ("ok", "32"), "note": ("note", "36"), "wrong": ("WRONG", "31")}


def main(argv: list[str]) -> int:
    """Print what this machine can do; see `samedevice doctor --help`."""
    parser = Parser(
        "doctor", "Torch build, driver, visible devices, and what a simulation can stand in for.", _EXAMPLES
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args(argv)
    lines = examine()
    if options.format == "json":
        print(json.dumps({"schema": 1, "lines": [asdict(line) for line in lines]}, indent=1))
    else:
        coloured = colours(sys.stdout)
        for line in lines:
            sign, colour = _SIGNS[line.state]
            shown = f"\x1b[{colour}m{sign:<6}\x1b[0m" if coloured else f"{sign:<6}"
            print(f"{shown} {line.topic:<14} {line.text}")
    return 1 if any(line.state == "wrong" for line in lines) else 0
