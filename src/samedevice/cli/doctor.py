"""`samedevice doctor`: what this machine can do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict

from samedevice.cli.arguments import Parser, colours
from samedevice.doctor import Line, examine

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
    lines = [*examine(), *_simulation()]
    if options.format == "json":
        print(json.dumps({"schema": 1, "lines": [asdict(line) for line in lines]}, indent=1))
    else:
        coloured = colours(sys.stdout)
        for line in lines:
            sign, colour = _SIGNS[line.state]
            shown = f"\x1b[{colour}m{sign:<6}\x1b[0m" if coloured else f"{sign:<6}"
            print(f"{shown} {line.topic:<14} {line.text}")
    return 1 if any(line.state == "wrong" for line in lines) else 0


def _simulation() -> Iterator[Line]:
    """What `--simulate` can stand in for here: tried, not supposed."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    from samedevice.simulation.simulate import simulate

    try:
        with simulate("cuda:2"):
            device = torch.ones(1).to("cuda:1").device
    except Exception as error:
        yield Line("simulation", f"does not work with this torch: {type(error).__name__}: {error}", "wrong")
        return
    yield Line("simulation", f"works: of two simulated devices, a tensor moved to the second is on {device}")
    yield Line("simulation", "stands in for cuda, mps and xpu; values are computed on the CPU, timings mean nothing")
    yield Line(
        "simulation", "does not cover custom CUDA kernels, Triton, CUDA graphs: these say so when called", "note"
    )
