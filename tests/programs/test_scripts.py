"""Whole programs around other people's trainers: run as `samedevice run` runs them, clean and with a bug planted."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from samedevice.running import RunOptions, run

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
SCRIPTS = sorted(Path(__file__).with_name("scripts").glob("*.py"))
PROGRAM = """
import sys, torchvision_operators
torchvision_operators.define()
from samedevice.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
PLANTED = re.compile(r"^(\s*).*?  # planted: (.*)$", re.MULTILINE)


@pytest.fixture(params=SCRIPTS, ids=lambda path: path.stem)
def script(request):
    text = request.param.read_text()
    for package in re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE):
        pytest.importorskip(package)
    yield request.param
    # accelerate keeps the device of a process for good.
    if (state := sys.modules.get("accelerate.state")) is not None:
        state.AcceleratorState._reset_state(reset_partial_state=True)


def test_runs_clean_and_as_on_the_cpu(script, tmp_path, capfd):
    report = tmp_path / "report.json"
    command = [sys.executable, "-c", PROGRAM, "run", "--simulate", "cuda:2", "--json", str(report), str(script)]
    folders = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": folders}
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert json.loads(report.read_text())["findings"] == []
    capfd.readouterr()
    assert run(RunOptions(str(script))).status == 0
    assert ran.stdout == capfd.readouterr().out


def test_a_planted_bug_is_found(script, tmp_path):
    text = script.read_text()
    said = dict(re.findall(r"^# (\w+): (.*)$", text, re.MULTILINE))
    planted = tmp_path / script.name
    planted.write_text(PLANTED.sub(r"\1\2", text))
    assert planted.read_text() != text
    finding = run(RunOptions(str(planted), simulate="cuda:2")).report.findings[0]
    line = text.splitlines()[finding.location.line - 1]
    assert "# fault" in line
    assert finding.culprit.name == said["culprit"]
    assert finding.operation == said["operation"]
    assert said["says"] in finding.raised.message
