"""The plugin in a real flake8, which knows of it by the installed package, or else by a configuration file."""

import ast
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from samedevice.linting import checking
from samedevice.linting.devices.analysis import analyse
from samedevice.linting.flake8_plugin import Faults, Smells

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
def plugins():
    """Both plugins as flake8 makes them for a file, but for its tree."""
    return lambda text: [plugin(ast.Module([], []), "a.py", text.splitlines(True)) for plugin in (Faults, Smells)]


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


@pytest.mark.parametrize("text", ["x = 1\n", 'import torch\nx = torch.zeros(3, device="cuda")\ny = x + x\n'])
def test_a_file_without_faults_is_passed_by(flake8, text):
    done = flake8(text, "--enable-extensions", "SD3")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize("text", ["import torch\nx = (\n", f"import torch\nx = torch.ones(2){' + 1' * 3000}\n"])
def test_what_cannot_be_parsed_or_followed_is_left_to_flake8(plugins, text):
    assert [list(plugin.run()) for plugin in plugins(text)] == [[], []]


def test_both_plugins_together_analyse_a_file_once(plugins, monkeypatch):
    analysed = []
    monkeypatch.setattr(checking, "analyse", lambda *given: analysed.append(given) or analyse(*given))
    codes = [[text[:5] for _, _, text, _ in plugin.run()] for plugin in plugins(BUG.format(comment=""))]
    assert codes == [["SD112"], ["SD306"]]
    assert len(analysed) == 1
