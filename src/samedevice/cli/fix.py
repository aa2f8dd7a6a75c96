"""`samedevice fix`: edit a script until a run of it meets no device fault, or nothing that is known helps."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from samedevice import reports
from samedevice.cli.arguments import SIMULATE, Parser, colours, split_program
from samedevice.errors import UsageError
from samedevice.findings import Report
from samedevice.fixing import FixOptions, FixResult, Made, fix_script
from samedevice.texts import say, say_number, shown

__all__ = ["main"]

_EXAMPLES = say(
    """\
  samedevice fix --simulate cuda train.py             no GPU needed
  samedevice fix --simulate cuda:2 --diff train.py    show the edits, change nothing
  samedevice fix --simulate cuda -m package.train     a module, with the files of its package
  samedevice fix train.py --epochs 1                  on the devices that are here

The program is run after each edit, which until then is made in memory only. Files are changed where the mended program
was seen to run to its end without a device fault: the script, and the files of its project that it imports.
`samedevice lint --fix` edits without running anything.

exit status: 0 clean now, 1 findings left, 2 wrong usage."""
)


def main(argv: list[str]) -> int:
    """Mend the script that `argv` names; see `samedevice fix --help`."""
    own, program = split_program(argv, {"--simulate"})
    parser = Parser("fix", say("Edit a script until a run of it meets no device fault that can be mended."), _EXAMPLES)
    parser.usage = (
        "samedevice fix [--simulate DEVICE[:N]] [--diff | --no-verify] SCRIPT [ARGS …]\n"
        "       samedevice fix [options] -m MODULE [ARGS …]"
    )
    parser.add_argument("--simulate", metavar="DEVICE[:N]", help=shown(SIMULATE))
    parser.add_argument("--diff", action="store_true", help=shown(say("show the edits, change nothing")))
    parser.add_argument(
        "--no-verify",
        action="store_true",
        help=shown(say("keep edits that helped even where no run was seen to end clean")),
    )
    options = parser.parse_args(own)
    module = program[:1] == ["-m"]
    if module:
        program = program[1:]
    if not program:
        raise UsageError(say("expected a module after -m") if module else say("expected a script"))
    result = fix_script(
        FixOptions(
            program[0],
            tuple(program[1:]),
            options.simulate,
            write=not options.diff,
            module=module,
            verify=not options.no_verify,
        )
    )
    if options.diff:
        _print_patch(result)
    sys.stdout.flush()
    print("\n".join(_told(result)), file=sys.stderr)
    return 0 if result.clean else 1


def _print_patch(result: FixResult) -> None:
    """Print the patch byte for byte: in the files' encoding, with their line ends."""
    raw = getattr(sys.stdout, "buffer", None)
    for change in result.changes:
        if raw is None:
            print(change.diff, end="")
        else:
            raw.write(change.patch)


def _told(result: FixResult) -> Iterator[str]:
    """What was done and what is left, for a person."""
    file = result.script
    if result.left:
        report = Report(result.left, "finding", file)
        yield reports.to_text(report, colours=colours(sys.stderr)).rstrip()
    yield from map(shown, _outcome(result, file))


def _outcome(result: FixResult, file: str) -> Iterator[str]:
    number = len(result.made)
    if not result.clean and result.written:
        yield say_number(
            "{file}: {number} edit made, and it is not clean: {reason}",
            "{file}: {number} edits made, and it is not clean: {reason}",
            number,
            file=file,
            reason=result.message,
        )
        yield from map(_line, result.made)
    elif not result.clean and number:
        yield say_number(
            "{file} is left as it was: {reason}, after {number} edit that helped",
            "{file} is left as it was: {reason}, after {number} edits that helped",
            number,
            file=file,
            reason=result.message,
        )
    elif not result.clean:
        yield say("{file} is left as it was: {reason}", file=file, reason=result.message)
    elif not number:
        yield say("{file} is clean; nothing to mend", file=file)
    else:
        if result.written:
            yield say_number(
                "{file}: {number} edit made, then clean", "{file}: {number} edits made, then clean", number, file=file
            )
        else:
            yield say_number(
                "{file}: {number} edit to make, then clean",
                "{file}: {number} edits to make, then clean",
                number,
                file=file,
            )
        yield from map(_line, result.made)


def _line(made: Made) -> str:
    """An edit with the files that it is in, for a person."""
    line = f"  {', '.join(f'{file}:{number}' for file, number in made.places)}: {shown(made.summary)}"
    if made.safe:
        return line
    unsafe = say("not marked as safe: it may change what the program computes, or where that runs; look at it")
    return f"{line}\n    {shown(unsafe)}"
