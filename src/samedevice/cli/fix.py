"""`samedevice fix`: edit a script until a run of it meets no device fault, or nothing that is known helps."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from samedevice import reports
from samedevice.cli.arguments import Parser, colours, split_program
from samedevice.errors import UsageError
from samedevice.findings import Report
from samedevice.fixing import FixOptions, FixResult, fix_script
from samedevice.reports.wording import count

__all__ = ["main"]

_EXAMPLES = """\
  samedevice fix --simulate cuda train.py             no GPU needed
  samedevice fix --simulate cuda:2 --diff train.py    show the edits, change nothing
  samedevice fix train.py --epochs 1                  on the devices that are here

The script is run, in a copy beside it, after each edit; it is changed only where the mended copy was seen to run to its
end without a device fault. `samedevice lint --fix` edits without running anything.

exit status: 0 clean now, 1 findings left, 2 wrong usage."""


def main(argv: list[str]) -> int:
    """Mend the script that `argv` names; see `samedevice fix --help`."""
    own, program = split_program(argv, {"--simulate"})
    parser = Parser("fix", "Edit a script until a run of it meets no device fault that can be mended.", _EXAMPLES)
    parser.usage = "samedevice fix [--simulate DEVICE[:N]] [--diff] SCRIPT [ARGS …]"
    parser.add_argument("--simulate", metavar="DEVICE[:N]", help="run on N simulated devices: cuda, cuda:2, mps, xpu …")
    parser.add_argument("--diff", action="store_true", help="show the edits, change nothing")
    options = parser.parse_args(own)
    if not program or program[0] == "-m":
        raise UsageError("expected a script")
    result = fix_script(FixOptions(program[0], tuple(program[1:]), options.simulate, write=not options.diff))
    if options.diff:
        print(result.change.diff, end="")
    sys.stdout.flush()
    print("\n".join(_told(result)), file=sys.stderr)
    return 0 if result.clean else 1


def _told(result: FixResult) -> Iterator[str]:
    """What was done and what is left, for a person."""
    file = result.change.file
    if result.left:
        report = Report(result.left, "finding", file)
        yield reports.to_text(report, colours=colours(sys.stderr)).rstrip()
    if not result.clean:
        tried = f", after {count(len(result.made), 'edit')} that helped" if result.made else ""
        yield f"{file} is left as it was: {result.message}{tried}"
    elif not result.made:
        yield f"{file} is clean; nothing to mend"
    else:
        yield f"{file}: {count(len(result.made), 'edit')} {'made' if result.written else 'to make'}, then clean"
        yield from (f"  {summary}" for summary in result.made)
