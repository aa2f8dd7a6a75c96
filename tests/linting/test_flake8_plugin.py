"""The plugin in a real flake8, which knows of it by the installed package, or else by a configuration file."""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

pytest.importorskip("flake8")

CONFIG = """\
[flake8]
select = SD
"""
LOCAL = """\
[flake8:local-plugins]
extension =
    SD = samedevice.linting.flake8_plugin:Faults
    SD3 = samedevice.linting.flake8_plugin:Smells
"""
PLUGIN = "samedevice.linting.flake8_plugin"
BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.numpy(){comment}\nz = torch.ones(3).to("cuda")\n'
FAULT = "a.py:3:5: SD112 `x` is on cuda; numpy needs it on the CPU\n"
SMELL = "a.py:4:5: SD306 `torch.ones` fills memory of the CPU only to copy it; make the tensor there\n"


@pytest.fixture
def flake8(tmp_path):
    def run(text, *options):
        installed = any(each.module == PLUGIN for each in entry_points(group="flake8.extension"))
        (tmp_path / ".flake8").write_text(CONFIG if installed else CONFIG + LOCAL)
        (tmp_path / "a.py").write_text(text)
        command = [sys.executable, "-m", "flake8", "--config", ".flake8", *options, "a.py"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_faults_are_reported_and_smells_where_they_are_enabled(flake8):
    done = flake8(BUG.format(comment=""))
    assert (done.stdout, done.stderr, done.returncode) == (FAULT, "", 1)
    assert flake8(BUG.format(comment=""), "--enable-extensions", "SD3").stdout == FAULT + SMELL
    assert flake8(BUG.format(comment="  # noqa: SD112")).stdout == ""
    assert flake8(BUG.format(comment=""), "--extend-ignore", "SD1").stdout == ""


def test_a_file_that_flake8_can_read_is_no_failure(flake8):
    assert flake8("x = 1\n").returncode == 0
    assert flake8(f"import torch\nx = {'-' * 3000}1\n").returncode in (0, 1)
