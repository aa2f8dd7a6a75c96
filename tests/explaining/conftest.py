"""Runs small scripts on simulated devices, with and without recorded origins, and explains how they failed."""

import contextlib
import io
import linecache
import runpy
import textwrap
from dataclasses import dataclass

import pytest

from samedevice.explaining import describing
from samedevice.explaining.explain import _explain_exception, explain
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


def explained(error, origins) -> Finding | None:
    """Explained without the wall that hides what goes wrong inside."""
    guarded, describing._mend = describing._mend, mend
    try:
        finding = _explain_exception(error, origins)
    finally:
        describing._mend = guarded
    assert finding == explain(error, origins=origins)
    return finding


@pytest.fixture
def run_script(tmp_path):
    """Run a script (the usual imports go before it) on a simulated machine."""
    count = 0

    def run(script: str, machine: str = "cuda:2", *, origins: bool = True, preamble: bool = True) -> Ran:
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
                    error = caught
                    finding = explained(caught, None)
        return Ran(finding, silent, error, text, str(path))

    return run
