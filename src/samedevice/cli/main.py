"""`samedevice COMMAND …`: find the command, load its file alone, turn a usage error into one line and exit status 2."""

from __future__ import annotations

import os
import sys

import samedevice
from samedevice.cli.streams import print_anything
from samedevice.errors import SameDeviceError, UsageError
from samedevice.texts import say, shown

TYPE_CHECKING = False  # as type checkers know it: typing alone would cost half of the start

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

COMMANDS = {
    "run": say("run a script as python does, and explain the device faults that it meets"),
    "lint": say("find device faults in source files, without running them"),
    "lsp": say("the linter for editors: diagnostics and quick fixes while a file is edited"),
    "fix": say("edit a script until it has no device fault left that can be mended"),
    "explain": say("explain a pasted traceback or error line"),
    "inspect": say("show devices, shapes and sizes in a checkpoint, without running its pickles"),
    "causes": say("the catalogue of causes: each with a wrong and a right example"),
    "doctor": say("what this machine, its torch and its drivers can do"),
}
"""Each command is `samedevice/cli/<name>.py` with a `main(argv) -> int`."""

INTERRUPTED = 130
"""What a shell makes of a process that SIGINT has ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the arguments after the program's name; None: those of this process.

    Returns:
        The exit status: 0 all well, 1 something was found, 2 wrong usage.
    """
    try:
        status = _main(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        status = INTERRUPTED
    except OSError as error:
        # Standard output cannot be written; point it elsewhere so that the interpreter's last flush does not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has gone (`| head`)
            return 1
        print(f"samedevice: {error}", file=sys.stderr)
        return 2
    if status == INTERRUPTED and argv is None and os.name == "posix":
        # Die by the signal itself, so that a shell loop around this process stops too.
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGINT)
    return status


def _main(arguments: list[str]) -> int:
    if arguments[:1] != ["run"]:
        print_anything(sys.stdout)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"samedevice {samedevice.__version__}")
        return 0
    name, *rest = arguments
    try:
        status = _command(name, rest)
        if name != "run" and sys.stdout is not None:
            sys.stdout.flush()
        return status
    except SystemExit as leaving:  # argparse has printed the help that was asked for
        return int(leaving.code or 0)
    except UsageError as error:
        known = name if name in COMMANDS else ""
        asked = " ".join(part for part in ("samedevice", known) if part)
        hint = shown(say("{problem}; see `{command} --help`", problem=str(error).rstrip(".。"), command=asked))
        print(f"{asked}: {hint}", file=sys.stderr)
    except SameDeviceError as error:
        print(f"samedevice {name}: {error}", file=sys.stderr)
    return 2


def _command(name: str, arguments: list[str]) -> int:
    import importlib

    if name not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(name, COMMANDS, n=1)
        if near:
            raise UsageError(say("there is no command {name!r}; you may mean `{near}`", name=name, near=near[0]))
        listed = ", ".join(COMMANDS)
        raise UsageError(say("there is no command {name!r}; commands are {commands}", name=name, commands=listed))
    module = importlib.import_module(f"samedevice.cli.{name}")
    return int(module.main(arguments))


def _help() -> str:
    listed = "\n".join(f"  {name:<9} {shown(summary)}" for name, summary in COMMANDS.items())
    return shown(
        say(
            """\
usage: samedevice COMMAND …

Every PyTorch tensor on the right device: run, explain, lint and fix, with or without a GPU.

commands:
{commands}

examples:
  samedevice run --simulate cuda train.py --epochs 1     no GPU needed
  samedevice run --simulate cuda:2 -m mypackage.train    two devices, a module
  samedevice lint src/                                   the source alone, torch not needed
  python train.py 2>&1 | samedevice explain -            a traceback from another machine

`samedevice COMMAND --help` tells more; --version prints the version.""",
            commands=listed,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
