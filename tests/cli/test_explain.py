import io
import json
import subprocess
import sys

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


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_what_powershell_writes(tmp_path, capsys, encoding):
    file = tmp_path / "error.log"
    file.write_bytes(TRACEBACK.encode(encoding))
    assert main(["explain", str(file)]) == 0
    assert "/home/someone/train.py:41 in step" in capsys.readouterr().out


def test_bytes_that_are_no_text_and_no_input_at_all():
    command = [sys.executable, "-m", "samedevice", "explain"]
    done = subprocess.run(command, input=b"\xe9\xff\n" + ERROR.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    closed = subprocess.run(["bash", "-c", f"{' '.join(command)} <&-"], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr.count("\n")) == (2, 1)
    assert closed.stderr.startswith("samedevice explain: there is no standard input; name a file")


NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        table = torch.zeros(8)
        self.table = table

    def forward(self, x):
        return x + self.table[: len(x)]


net = Net().to("cuda")
net(torch.ones(4, device="cuda"))
"""


@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "> "])
def test_the_source_names_what_the_text_does_not(tmp_path, capsys, prefix):
    script = tmp_path / "net.py"
    script.write_text(NET)
    lines = [
        "Traceback (most recent call last):",
        f'  File "{script}", line 12, in forward',
        "    return x + self.table[: len(x)]",
        ERROR,
    ]
    log = tmp_path / "error.log"
    log.write_text("\n".join(prefix + line for line in lines))
    assert main(["explain", "--format", "json", str(log)]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["cause"], finding["location"]["line"]) == ("plain-attribute", 12)
    assert finding["culprit"]["name"].startswith("self.table")
    assert (finding["culprit"]["device"], finding["expected_device"]) == ("cpu", "cuda:0")
    assert finding["fix"]["edits"][0]["new"].strip() == 'self.register_buffer("table", table, persistent=False)'


def test_an_error_line_alone_shows_no_name_of_ours(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(ERROR))
    assert main(["explain"]) == 0
    printed = capsys.readouterr().out
    assert "common" not in printed
    assert "operand is" not in printed


def test_a_device_named_in_a_text_is_not_read(monkeypatch, capsys):
    text = f'Traceback (most recent call last):\n  File "/dev/zero", line 1, in f\n    x + y\n{ERROR}'
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["explain"]) == 0
    assert "/dev/zero:1 in f" in capsys.readouterr().out
