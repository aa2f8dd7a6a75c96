"""`samedevice doctor`: what this machine can do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict

from samedevice.cli.arguments import Parser, colours
from samedevice.doctor import Line, examine
from samedevice.reports.columns import pad
from samedevice.texts import say, shown

__all__ = ["main"]

_EXAMPLES = say(
    """\
  samedevice doctor
  samedevice doctor --format json

exit status: 0 all in order, 1 something is wrong."""
)
_SIGNS = {"ok": (say("ok"), "32"), "note": (say("note"), "36"), "wrong": (say("WRONG"), "31")}


def main(argv: list[str]) -> int:
    """Print what this machine can do; see `samedevice doctor --help`."""
    parser = Parser(
        "doctor", say("Torch build, driver, visible devices, and what a simulation can stand in for."), _EXAMPLES
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
            mark = pad(shown(sign), 6)
            mark = f"\x1b[{colour}m{mark}\x1b[0m" if coloured else mark
            print(f"{mark} {pad(shown(line.topic), 14)} {shown(line.text)}")
    return 1 if any(line.state == "wrong" for line in lines) else 0


def _simulation() -> Iterator[Line]:
    """What `--simulate` can stand in for here: tried, not supposed."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    from samedevice.simulation.machine import KINDS
    from samedevice.simulation.simulate import simulate

    topic = say("simulation")
    try:
        with simulate("cuda:2"):
            device = torch.ones(1).to("cuda:1").device
    except Exception as error:
        said = say("does not work with this torch: {type}: {error}", type=type(error).__name__, error=str(error))
        yield Line(topic, said, "wrong")
        return
    works = say("works: of two simulated devices, a tensor moved to the second is on {device}", device=str(device))
    yield Line(topic, works)
    stands_in = say(
        "stands in for {kinds}; values are computed on the CPU, timings mean nothing", kinds=", ".join(KINDS)
    )
    yield Line(topic, stands_in)
    yield Line(topic, say("does not cover custom CUDA kernels, Triton, CUDA graphs: these say so when called"), "note")
