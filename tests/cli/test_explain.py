import io
import json

import pytest

from samedevice.cli.main import main

ERROR = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
TRACEBACK = f"""\
Traceback (most recent call last):
  File "/home/someone/train.py", line 41, in step
    logits = model(batch)
  File "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)
{ERROR} (when checking argument for argument mat1 in method wrapper_CUDA_addmm)
"""


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "error.log"
    file.write_text(f"epoch 1\n{TRACEBACK}\nsrun: job failed\n", encoding="utf-8")
    return str(file)


def test_a_file(log, capsys):
    assert main(["explain", log]) == 0
    printed = capsys.readouterr()
    assert "/home/someone/train.py:41 in step" in printed.out
    assert "Cause SD1" in printed.out
    assert printed.err == ""


@pytest.mark.parametrize("arguments", [["explain"], ["explain", "-"]])
def test_standard_input(monkeypatch, capsys, arguments):
    monkeypatch.setattr("sys.stdin", io.StringIO(ERROR))
    assert main(arguments) == 0
    assert "at least two devices, cuda:0 and cpu!" in capsys.readouterr().out


def test_json(log, capsys):
    assert main(["explain", "--format", "json", log]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["location"]["line"] == 41
    assert finding["raised"]["type"] == "RuntimeError"


def test_no_device_fault(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("KeyError: 'x'\n"))
    assert main(["explain"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no device fault" in printed.err
