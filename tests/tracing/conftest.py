"""Runs small scripts under `watch()` on a simulated machine."""

import contextlib
import io
import linecache
import runpy
import textwrap
from types import SimpleNamespace

import pytest

from samedevice.simulation.simulate import simulate
from samedevice.tracing.watch import watch

PREAMBLE = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


@pytest.fixture
def watch_script(tmp_path):
    """Run a script; gives its variables, its watch and the lines that comments mark."""

    def run(script, machine="cuda:2", preamble=True):
        text = (PREAMBLE if preamble else "") + textwrap.dedent(script).lstrip("\n")
        path = tmp_path / "watched.py"
        path.write_text(text)
        linecache.checkcache()
        marks = {line.rpartition("# ")[2]: number for number, line in enumerate(text.splitlines(), 1) if "# " in line}
        with simulate(machine), contextlib.redirect_stdout(io.StringIO()), watch() as watching:
            names = runpy.run_path(str(path), run_name="__main__")
        return SimpleNamespace(names=names, watching=watching, marks=marks, report=watching.report, text=text)

    return run
