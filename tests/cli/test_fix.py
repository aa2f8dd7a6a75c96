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
    assert capsys.readouterr().err.startswith("train.py: 1 edit made, then clean\n")
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
    ],
)
def test_wrong_usage(script, capsys, arguments, message):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
