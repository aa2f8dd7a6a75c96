"""Runs small scripts on simulated devices, with and without recorded origins, and explains how they failed."""

import contextlib
import io
import linecache
import runpy
import textwrap
from dataclasses import dataclass
from types import TracebackType

import pytest

import samedevice
from samedevice.explaining import describing
from samedevice.explaining.explain import _explain_exception, explain
from samedevice.explaining.frames import chain_of
from samedevice.explaining.mending.mend import mend
from samedevice.findings import Finding
from samedevice.simulation.simulate import simulate
from samedevice.tracing.watch import watch

PREAMBLE = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


@dataclass
class Ran:
    """How a script went: the finding of its exception, those of its watch, and its numbered lines."""

    finding: Finding | None
    silent: tuple[Finding, ...]
    error: BaseException | None
    text: str
    file: str

    def line(self, mark: str) -> int | None:
        """The number of the line that ends in the comment `# mark`."""
        lines = [number for number, line in enumerate(self.text.splitlines(), 1) if line.rstrip().endswith(f"# {mark}")]
        return lines[0] if lines else None

    def marked(self, mark: str, how: str) -> int | None:
        """The line whose comment holds the word `mark`; one with `mark` and the word `how` goes before."""
        words = [line.rpartition("# ")[2].split() if "# " in line else [] for line in self.text.splitlines()]
        found = [
            number for number, said in enumerate(words, 1) if mark in said and not {"bare", "recorded"} & set(said)
        ]
        special = [number for number, said in enumerate(words, 1) if mark in said and how in said]
        return next(iter(special or found), None)


def explained(error, origins) -> Finding | None:
    """Explained without the wall that hides what goes wrong inside."""
    guarded, describing._mend = describing._mend, mend
    try:
        finding = _explain_exception(error, origins)
    finally:
        describing._mend = guarded
    assert finding == explain(error, origins=origins)
    return finding


def as_on_a_real_machine(error):
    """Take what only a simulation leaves on an exception: the operands, and its own frames below the user's line."""
    for each in chain_of(error):
        vars(each).pop("_samedevice_fault", None)
        links, link = [], each.__traceback__
        while link is not None:
            if not link.tb_frame.f_code.co_filename.startswith(str(samedevice.__path__[0])):
                links.append(link)
            link = link.tb_next
        for one in reversed(links):
            link = TracebackType(link, one.tb_frame, one.tb_lasti, one.tb_lineno)
        each.__traceback__ = link
    return error


@pytest.fixture
def run_script(tmp_path):
    """Run a script (the usual imports go before it) on a simulated machine."""
    count = 0

    def run(
        script: str, machine: str = "cuda:2", *, origins: bool = True, preamble: bool = True, bare: bool = False
    ) -> Ran:
        nonlocal count
        count += 1
        text = (PREAMBLE if preamble else "") + textwrap.dedent(script).lstrip("\n")
        path = tmp_path / f"script_{count}.py"
        path.write_text(text)
        linecache.checkcache()
        error, finding, silent = None, None, ()
        with simulate(machine), contextlib.redirect_stdout(io.StringIO()):
            if origins:
                with watch() as watching:
                    try:
                        runpy.run_path(str(path), run_name="__main__")
                    except Exception as caught:
                        error = caught
                        finding = explained(caught, watching)
                silent = watching.report.findings
            else:
                try:
                    runpy.run_path(str(path), run_name="__main__")
                except Exception as caught:
                    error = as_on_a_real_machine(caught) if bare else caught
                    finding = explained(error, None)
        return Ran(finding, silent, error, text, str(path))

    return run


@pytest.fixture
def check_row(run_script):
    """Run a row of a table of names: the culprit's name, its line and the failing line, as the comments mark them."""

    def check(name: str, script: str, how: str, machine: str = "cuda:2") -> Ran:
        ran = run_script(script, machine, origins=how == "recorded", bare=how == "bare")
        assert ran.finding is not None, ran.error
        culprit = ran.finding.culprit
        assert culprit is not None, ran.finding
        told = (culprit.name, culprit.line, ran.finding.location.line)
        assert told == (name, ran.marked("culprit", how), ran.marked("fault", how))
        return ran

    return check
