"""The ranks and other child processes of a simulated run: they take part, and what ends them is told with the run.

Three ways lead to a child. One that is forked has the simulation, and what is installed here. One that multiprocessing
starts anew ("spawn") is told to simulate by `simulation.processes`, and told by it to call `Joining`. A rank that a
launcher starts as a command (`torchrun`, Lightning) becomes a run of its own. Each writes the device faults that end it
to a folder, which the first process reads at its end. Other commands that a script starts are left alone.

A rank's command is one with Python's own interpreter and a `LOCAL_RANK` in its environment that this process has not.
Source: torch/distributed/elastic/multiprocessing/subprocess_handler, 2.6 to 2.14, and in Lightning 2
fabric/strategies/launchers/subprocess_script.py.
"""

from __future__ import annotations

import contextlib
import multiprocessing.process
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samedevice.explaining.explain import explain
from samedevice.findings import Finding
from samedevice.simulation.patching import Applied, Patch, for_good
from samedevice.texts import say

if TYPE_CHECKING:
    from samedevice.tracing.watch import Watch

__all__ = ["Children", "taking_part"]

_FOLDER = "_SAMEDEVICE_FINDINGS"
"""In the environment of a rank's run: where it leaves its findings."""
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Options of `python` whose value is the next argument: "Command line and environment" of its manual, 3.10 to 3.14."""


@dataclass(frozen=True)
class Children:
    """Where the processes of one run leave their findings.

    Attributes:
        folder: a folder that lives as long as the run.
        is_rank: whether this run is a rank's and another one tells what it found.
    """

    folder: str
    is_rank: bool = False

    def leave(self, finding: Finding) -> None:
        """Leave a finding of this process for the run's first one."""
        file, path = tempfile.mkstemp(dir=self.folder, suffix=".part")
        with os.fdopen(file, "wb") as stream:
            pickle.dump(_from_here(finding), stream)
        # Whole or not at all: a launcher kills the other ranks.
        Path(path).replace(path.removesuffix("part") + "finding")

    def findings(self) -> list[Finding]:
        """What the other processes left, the earliest first."""
        files = sorted(Path(self.folder).glob("*.finding"), key=lambda file: file.stat().st_mtime_ns)
        return [pickle.loads(file.read_bytes()) for file in files]


@contextlib.contextmanager
def taking_part(simulate: str, watching: Watch | None) -> Iterator[Children]:
    """Within it child processes belong to this run.

    Args:
        simulate: what they simulate, as DEVICE[:N].
        watching: what records origins, if anything does.

    Yields:
        What the children leave.
    """
    folder = os.environ.pop(_FOLDER, None)
    with contextlib.ExitStack() as stack:
        if folder is None:
            children = Children(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        else:
            children = Children(folder, is_rank=True)
        stack.enter_context(_telling_spawned(Joining(children, watching is not None)))
        stack.enter_context(Applied([Patch(multiprocessing.process.BaseProcess, "run", _noting(children, watching))]))
        own = ["--simulate", simulate, *(() if watching is not None else ("--no-origins",))]
        stack.enter_context(Applied([Patch(subprocess.Popen, "__init__", _starting_runs(own, children.folder))]))
        yield children


@dataclass(frozen=True)
class Joining:
    """Called in a process that multiprocessing started anew, once that simulates."""

    children: Children
    origins: bool

    def __call__(self) -> None:
        """Note what ends the process, as long as it lives."""
        watching = None
        if self.origins:
            from samedevice.tracing.watch import watch

            watching = for_good(watch())
        base = multiprocessing.process.BaseProcess
        base.run = _noting(self.children, watching)  # type: ignore[method-assign, assignment]


@contextlib.contextmanager
def _telling_spawned(joining: Joining) -> Iterator[None]:
    from samedevice.simulation import processes

    processes.joining.append(joining)
    try:
        yield
    finally:
        processes.joining.remove(joining)


def _noting(children: Children, watching: Watch | None) -> Callable[[Any], None]:
    """`Process.run`, after which the device faults of the process are left for the run."""
    original = multiprocessing.process.BaseProcess.run

    def run(process: Any) -> None:
        try:
            original(process)
        except SystemExit as leaving:
            # As torch.multiprocessing.spawn ends a process that failed.
            if leaving.code and leaving.__context__ is not None:
                leave(explain(leaving.__context__, origins=watching))
            raise
        except BaseException as error:
            leave(explain(error, origins=watching))
            raise
        finally:
            leave(*(watching.report.findings if watching is not None else ()))

    def leave(*findings: Finding | None) -> None:
        with contextlib.suppress(OSError):
            for finding in findings:
                if finding is not None:
                    children.leave(finding)

    return run


def _from_here(finding: Finding) -> Finding:
    """The finding, with the rank of this process where it has one."""
    rank, size = _rank()
    if rank is None:
        return finding
    return replace(finding, reasons=(*finding.reasons, say("met in rank {rank} of {size}", rank=rank, size=size)))


def _rank() -> tuple[int | None, int]:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return (int(rank), int(size)) if rank.isdecimal() and size.isdecimal() else (None, 0)


# -- ranks that are commands -------------------------------------------------------------------------------------------


def _starting_runs(own: list[str], folder: str) -> Callable[..., None]:
    """`Popen.__init__`, which makes a rank's command a run of its own."""
    original: Any = subprocess.Popen.__init__

    def __init__(self: Any, args: Any, *more: Any, **named: Any) -> None:
        environment = named.get("env")
        if isinstance(environment, Mapping) and _is_another_rank(environment):
            command = _as_run(args, own)
            if command is not None:
                args, named["env"] = command, {**environment, _FOLDER: folder}
        original(self, args, *more, **named)

    return __init__


def _is_another_rank(environment: Mapping[str, str]) -> bool:
    rank = environment.get("LOCAL_RANK")
    return rank is not None and rank != os.environ.get("LOCAL_RANK")


def _as_run(command: Any, own: list[str]) -> list[str] | None:
    """`python [options] SCRIPT …` as `python [options] -m samedevice run OWN SCRIPT …`; None: it is something else."""
    if not isinstance(command, list | tuple) or not command or not _is_this_python(command[0]):
        return None
    words = [os.fspath(word) for word in command]
    place = 1
    while place < len(words) and words[place].startswith("-") and words[place] not in ("-", "-c", "-m"):
        place += 2 if words[place] in _WITH_VALUE else 1
    if place >= len(words) or words[place] in ("-", "-c"):
        return None
    if words[place : place + 3] == ["-m", "samedevice", "run"]:
        return None
    return [*words[:place], "-m", "samedevice", "run", *own, *words[place:]]


def _is_this_python(word: Any) -> bool:
    found = shutil.which(os.fspath(word))
    return found is not None and Path(found).samefile(sys.executable)
