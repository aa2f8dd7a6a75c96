"""Run a script as `python` does, simulated or not, and keep the device faults that were found on the way.

`run` gives the script what `python SCRIPT ARGS` gives it (`programs`, `interpreter`) and prints nothing but what Python
would print.

What is reported:
    - a device fault that ends the script: uncaught, or caught and answered by another exception or by `sys.exit` with a
      status other than 0;
    - a device fault that ends a thread or an exit function;
    - with a simulation and origins, also the faults that raise nothing (`tracing`).
A fault that the script catches and lives on with is the script's own business, as on a real machine: not reported.
Work that is left in an executor which nobody shuts down runs after the simulation has ended.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from samedevice.errors import UsageError
from samedevice.explaining.explain import explain
from samedevice.findings import Finding, Outcome, Report, named_from
from samedevice.running import children, interpreter, programs
from samedevice.simulation.patching import Applied, Patch
from samedevice.texts import say

if TYPE_CHECKING:
    from samedevice.tracing.watch import Watch
from samedevice.usercode import users_traceback

__all__ = ["RunOptions", "RunResult", "run"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What to run and how."""

    target: str
    """A script, a folder or zip file with a `__main__.py`, or with `module` a module's name."""
    args: tuple[str, ...] = ()
    module: bool = False
    simulate: str | None = None
    """DEVICE[:N], e.g. "cuda:2"; None: the devices that are here."""
    origins: bool = True
    """Whether a simulated run records where each tensor came from."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How it ended: `status` is what the process should exit with."""

    outcome: Outcome
    report: Report
    status: int
    told: bool = False
    """Whether another run tells what was found: this one is a rank of it."""


def run(options: RunOptions) -> RunResult:
    """Run a script or module to its end and say how it went.

    Args:
        options: what to run.

    Returns:
        The outcome, the report and the exit status: the script's own, or 1 where a device fault was found.

    Raises:
        UsageError: there is no such script or module, or no such device to simulate.
    """
    faults = _Faults(str(Path.cwd()))
    with contextlib.ExitStack() as stack:
        simulated, watching = _enter_devices(options, stack)
        faults.origins = watching
        others = None
        if options.simulate is not None:
            others = stack.enter_context(children.taking_part(options.simulate, watching))
        argv = ["-m" if options.module else options.target, *options.args]
        stack.enter_context(interpreter.state(argv, programs.first_folder(options.target, module=options.module)))
        stack.enter_context(_faults_in_threads(faults))
        at_exit = stack.enter_context(interpreter.exit_functions())
        status = _call(lambda: programs.execute(options.target, module=options.module), faults)
        with contextlib.suppress(KeyboardInterrupt):
            interpreter.wait_for_threads()
        interpreter.call_in_turn(at_exit, faults.note)
        if others is not None and not others.is_rank:
            faults.join(others.findings())
    for finding in watching.report.findings if watching is not None else ():
        faults.add(finding)
    is_rank = others is not None and others.is_rank
    if others is not None and is_rank:
        for finding in faults.found:
            others.leave(finding)
    outcome: Outcome = "finding" if faults.found else "error" if status else "ok"
    script = named_from(faults.folder, options.target)
    report = Report(findings=tuple(faults.found), outcome=outcome, script=script, simulated=simulated)
    return RunResult(outcome, report, 1 if faults.found else status, is_rank)


@dataclass
class _Faults:
    """The findings so far, and how an exception becomes one."""

    folder: str
    origins: Watch | None = None
    found: list[Finding] = field(default_factory=list)

    def note(self, error: BaseException) -> None:
        """Add the device fault that `error` is or stems from, if there is one."""
        finding = explain(error, origins=self.origins)
        if finding is not None:
            self.add(finding)

    def join(self, others: list[Finding]) -> None:
        """Add what other processes found, in the place of errors here that only repeat their words."""
        said = [finding.raised.message for finding in others if finding.raised is not None]
        self.found = [each for each in self.found if not (each.raised and any(m in each.raised.message for m in said))]
        for finding in others:
            self.add(finding)

    def add(self, finding: Finding) -> None:
        finding = finding.named_from(self.folder)
        # Threads that run one line meet one fault, with tensors of their own.
        if not any(_tell_the_same(each, finding) for each in self.found):
            self.found.append(finding)


def _tell_the_same(first: Finding, second: Finding) -> bool:
    """Whether two findings are of one fault: the same cause, line and culprit."""

    def told(finding: Finding) -> tuple[object, ...]:
        location, culprit = finding.location, finding.culprit
        place = (location.file, location.line, location.function) if location else None
        return finding.code, finding.severity, place, culprit.name if culprit else finding.message

    return told(first) == told(second)


def _enter_devices(options: RunOptions, stack: contextlib.ExitStack) -> tuple[tuple[str, ...] | None, Watch | None]:
    """Begin the simulation that was asked for; without one nothing is imported and no operation is slowed down."""
    if options.simulate is None:
        return None, None
    try:
        from samedevice.simulation.simulate import simulate
        from samedevice.tracing.watch import watch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise UsageError(say("--simulate needs torch, which is not installed here: pip install torch")) from None

    machine = stack.enter_context(simulate(options.simulate))
    return machine.names, stack.enter_context(watch()) if options.origins else None


def _call(execute: Callable[[], None], faults: _Faults) -> int:
    """The exit status of `execute`, its exceptions answered as the interpreter answers them."""
    try:
        execute()
    except programs.NothingToRun:
        raise
    except SystemExit as error:
        status = interpreter.exit_status(error)
        if status != 0 and error.__context__ is not None:
            faults.note(error.__context__)
        return status
    except BaseException as error:
        faults.note(error)
        return interpreter.show(error)
    return 0


@contextlib.contextmanager
def _faults_in_threads(faults: _Faults) -> Iterator[None]:
    """Note the device faults that end a thread; they are printed as ever."""
    show = threading.excepthook

    def note_and_show(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            faults.note(args.exc_value)
            users = users_traceback(args.exc_traceback)
            args = threading.ExceptHookArgs((args.exc_type, args.exc_value, users, args.thread))
        show(args)

    with Applied([Patch(threading, "excepthook", note_and_show)]):
        yield
