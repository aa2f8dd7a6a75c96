"""`samedevice run`: a script as python runs it, its device faults explained on standard error and in reports."""

from __future__ import annotations

import contextlib
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import TextIO

from samedevice import reports
from samedevice.cli.arguments import SIMULATE, Parser, colours, split_program, write
from samedevice.errors import UsageError
from samedevice.findings import Report
from samedevice.running import RunOptions, run
from samedevice.texts import Text, say, shown

__all__ = ["main"]

_WRITERS = {"json": reports.to_json, "html": reports.to_html, "sarif": reports.to_sarif}
_EXAMPLES = say(
    """\
  samedevice run train.py --epochs 1                   on the devices that are here
  samedevice run --simulate cuda train.py              as on a machine with one GPU, without one
  samedevice run --simulate cuda:2 -m mypackage.train  two devices, cuda:0 and cuda:1; a module
  samedevice run --json report.json --html report.html train.py

exit status: the script's own; 1 where a device fault was found, also one that raised nothing; 2 for wrong usage or a
script that cannot be read."""
)


def main(argv: list[str]) -> int:
    """Run the script that `argv` names; see `samedevice run --help`."""
    own, program = split_program(argv, {"--simulate", *(f"--{name}" for name in _WRITERS)})
    options = _parser().parse_args(own)
    run_options = _run_options(options, program)
    files = _report_files(options, run_options.target)
    for file in files.values():
        _make_way(file)
    process = os.getpid()
    stream = sys.stderr  # the script may put another in its place
    result = run(run_options)
    if os.getpid() == process:  # a forked child that came to the script's end leaves the reports to its parent
        if not result.told:
            _explain(result.report, stream)
        for name, file in files.items():
            write(file, _WRITERS[name](result.report))
    return result.status


def _parser() -> Parser:
    does = say("Run a script as `python SCRIPT ARGS` does, and explain the device faults that it meets.")
    parser = Parser("run", does, _EXAMPLES)
    parser.usage = "samedevice run [options] SCRIPT [ARGS …]\n       samedevice run [options] -m MODULE [ARGS …]"
    parser.add_argument("--simulate", metavar="DEVICE[:N]", help=shown(SIMULATE))
    for name in _WRITERS:
        parser.add_argument(
            f"--{name}", metavar="FILE", help=shown(say("write the report to FILE as {format}", format=name.upper()))
        )
    parser.add_argument(
        "--no-origins",
        action="store_true",
        help=shown(say("do not record where tensors come from: a simulated run is faster and its answers less exact")),
    )
    return parser


def _run_options(options: Namespace, program: list[str]) -> RunOptions:
    module = program[:1] == ["-m"]
    if module:
        program = program[1:]
    if not program:
        raise UsageError(say("expected a module after -m") if module else say("expected a script"))
    return RunOptions(
        target=program[0],
        args=tuple(program[1:]),
        module=module,
        simulate=options.simulate,
        origins=not options.no_origins,
    )


def _report_files(options: Namespace, target: str) -> dict[str, str]:
    """Where each report goes: absolute, since the script may change its folder before it is written.

    Raises:
        UsageError: a report would replace another one or the script itself.
    """
    asked = {name: path for name in _WRITERS if (path := getattr(options, name)) is not None}
    files = {name: str(Path(path).absolute()) for name, path in asked.items()}
    taken: dict[str, str | None] = {os.path.realpath(target): None}
    for name, file in files.items():
        real = os.path.realpath(file)
        if real in taken:
            raise UsageError(_taken(asked[name], taken[real]))
        if Path(file).is_file() or not Path(file).exists():  # /dev/null takes any number
            taken[real] = name
    return files


def _taken(file: str, by: str | None) -> Text:
    if by is None:
        return say("cannot write {file}: that is the script", file=file)
    return say("cannot write {file}: that is the file of --{option}", file=file, option=by)


def _make_way(file: str) -> None:
    """Make the folder for a report and remove that of an earlier run: a script that is killed must not leave one.

    Pipes, devices such as /dev/null, and links stay.

    Raises:
        UsageError: the report could not be written there, said before the script has run for hours.
    """
    path = Path(file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise UsageError(say("cannot write {file}: it is a folder", file=file))
        if path.is_file() and not path.is_symlink():
            path.unlink()
    except OSError as error:
        raise UsageError(say("cannot write {file}: {reason}", file=file, reason=error.strerror or str(error))) from None


def _explain(report: Report, stream: TextIO | None) -> None:
    """Tell a person on standard error; a run without a simulation that found nothing is as silent as python."""
    # A script may have closed its streams or taken them away.
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.flush()
    if stream is None:
        return
    with contextlib.suppress(OSError, ValueError):
        if report.findings:
            text = reports.to_text(report, colours=colours(stream))
            print(f"\n{text}", end="", file=stream, flush=True)
        elif report.simulated:
            print(f"samedevice: {reports.to_text(report)}", end="", file=stream, flush=True)
