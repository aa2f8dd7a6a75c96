"""Each run of a mended copy is a process of its own, so there are few tests here; `tests/fixing` holds the rest."""

from pathlib import Path

import pytest

from samedevice.cli.main import main

WRONG = """\
import sys
import torch
from torch import nn

assert sys.argv[1:] == ["--epochs", "1"]
model = nn.Linear(4, 2).to("cuda")
images = torch.rand(8, 4)
logits = model(images)
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(WRONG, encoding="utf-8")
    return Path("train.py")


def test_a_script_is_mended(script, capsys):
    assert main(["fix", "--simulate", "cuda", "train.py", "--epochs", "1"]) == 0
    assert script.read_text(encoding="utf-8") != WRONG
    assert capsys.readouterr().err.startswith("train.py: 1 edit made, then clean\n  train.py:8: ")
    assert [path.name for path in Path().iterdir()] == ["train.py"]


def test_diff_changes_nothing(script, capsys):
    assert main(["fix", "--simulate", "cuda", "--diff", "train.py", "--epochs", "1"]) == 0
    assert script.read_text(encoding="utf-8") == WRONG
    printed = capsys.readouterr()
    assert printed.out.startswith("--- a/train.py\n+++ b/train.py\n")
    assert printed.err.startswith("train.py: 1 edit to make, then clean\n")


def test_a_script_that_fails_for_a_reason_of_its_own_is_left_alone(script, capsys):
    assert main(["fix", "train.py"]) == 1
    assert script.read_text(encoding="utf-8") == WRONG
    assert "train.py is left as it was: the script fails for a reason of its own" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fix"], "expected a script"),
        (["fix", "-m"], "expected a module after -m"),
        (["fix", "-m", "none"], "module none cannot be found"),
        (["fix", "none.py"], "none.py"),
        (["fix", "--simulate", "bogus", "train.py"], "cannot simulate 'bogus': known kinds are cuda"),
        (["fix", "--simulate", "cuda:0", "train.py"], "after the colon comes how many devices"),
    ],
)
def test_wrong_usage(script, capsys, arguments, message):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert script.read_text(encoding="utf-8") == WRONG


def test_what_changes_more_than_the_device_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = Path("gen.py")
    path.write_text("import torch\ng = torch.Generator()\ntorch.randperm(5, generator=g, device='cuda')\n")
    assert main(["fix", "--simulate", "cuda", "gen.py"]) == 0
    printed = capsys.readouterr().err
    assert "  gen.py:2: " in printed
    assert "    not marked as safe: it may change what the program computes" in printed


def test_an_edit_that_did_not_help_is_neither_counted_nor_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = Path("warn.py")
    text = "import torch\nx = torch.ones(3).cuda()\nx.to('cuda:1')\n"
    path.write_text(text)
    assert main(["fix", "--simulate", "cuda", "--no-verify", "warn.py"]) == 1
    printed = capsys.readouterr().err
    assert path.read_text() == text
    assert "warn.py is left as it was: no edit that is known helps against what is left\n" in printed
    assert "at warn.py:3 in <module>: x.to('cuda:1')" in printed
