"""`lint --fix` and `--diff`: what is written, in which bytes, and what a process that is killed leaves."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samedevice.cli.main import main
from samedevice.config import Config
from samedevice.fixing import fix_text
from samedevice.linting.lint import lint_source

BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.numpy()  # {comment}\n'
FILES = {
    "plain.py": BUG.format(comment="why").encode(),
    "crlf.py": BUG.format(comment="é").replace("\n", "\r\n").encode(),
    "bom.py": b"\xef\xbb\xbf" + BUG.format(comment="é").encode(),
    "latin.py": b"# -*- coding: latin-1 -*-\n" + BUG.format(comment="é").encode("latin-1"),
    "cyrillic.py": b"#!/usr/bin/python\n# vim: set fileencoding=cp1251 :\n" + BUG.format(comment="ж").encode("cp1251"),
    "japanese.py": b"# coding: shift_jis\n" + BUG.format(comment="表").encode("shift_jis"),
    "form feed.py": BUG.format(comment="a").replace("\nx", "\n\x0c\nx").encode(),
    "mixed.py": BUG.format(comment="a").replace("\n", "\r\n", 2).encode(),
    "no_end.py": BUG.format(comment="a").encode().rstrip(),
    "tabs.py": b"import torch\nif True:\n\tx = torch.zeros(3, device='cuda')\n\ty = [\t# tab\n\t\t\tx.numpy(),\t]\n",
    "vertical.py": BUG.format(comment="a\x0b b\x1c c\u2028 d\x85").encode(),
    'quo"ted é.py': BUG.format(comment="name").encode(),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, data in FILES.items():
        Path(name).write_bytes(data)
    return tmp_path


def contents():
    return {path.name: path.read_bytes() for path in Path().glob("*.py")}


MENDED = {name: data.replace(b"x.numpy()", b"x.cpu().numpy()") for name, data in FILES.items()}


def test_nothing_but_the_expression_changes_in_the_bytes(folder, capsys):
    assert main(["lint", "--fix", "."]) == 0
    assert contents() == MENDED
    assert capsys.readouterr().err.count(": mended\n") == len(FILES)
    before = {path: path.stat().st_mtime_ns for path in Path().iterdir()}
    assert main(["lint", "--fix", "."]) == 0
    assert {path: path.stat().st_mtime_ns for path in Path().iterdir()} == before


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_applies_the_diff_byte_for_byte(folder, capfdbinary):
    assert main(["lint", "--diff", str(folder)]) == 1
    assert contents() == FILES
    patch = capfdbinary.readouterr().out
    subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], input=patch, check=True)
    assert contents() == MENDED


def test_an_encoding_that_would_give_back_other_bytes_is_left_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # Two escape sequences in a row, of which the codec writes one.
    data = b"# coding: iso-2022-jp\n" + BUG.format(comment="\x1b$B\x1b(B x").encode()
    Path("a.py").write_bytes(data)
    assert main(["lint", "--fix", "a.py"]) in (1, 2)
    assert Path("a.py").read_bytes() == data


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everything")
def test_a_file_that_may_not_be_written_stops_no_other(folder, capsys):
    Path("plain.py").chmod(0o444)
    assert main(["lint", "--fix", "."]) == 2
    assert contents() == {**MENDED, "plain.py": FILES["plain.py"]}
    assert "plain.py: not mended: plain.py may not be written to" in capsys.readouterr().out


def test_unsafe_edits_are_made_where_they_are_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "import torch\nx = torch.rand(3).cuda()\n"
    Path("a.py").write_text(text)
    arguments = ["lint", "--select", "SD306", "a.py"]
    assert main([*arguments, "--fix"]) == 1
    assert Path("a.py").read_text() == text
    assert "look twice" in capsys.readouterr().out
    for flag in ("--unsafe", "--unsafe-fixes"):
        Path("a.py").write_text(text)
        assert main([*arguments, "--fix", flag]) == 0
        assert Path("a.py").read_text() == 'import torch\nx = torch.rand(3, device="cuda")\n'


@pytest.mark.skipif(os.name != "posix", reason="a process is killed by a signal")
@pytest.mark.parametrize("written_before", [1, 5, 12])
def test_whoever_is_killed_leaves_old_files_and_new_ones_and_none_between(tmp_path, written_before):
    padding = "# padding\n" * 20_000
    before, after = (text + padding for text in (BUG, BUG.replace("x.numpy()", "x.cpu().numpy()")))
    paths = [tmp_path / f"a{number:02}.py" for number in range(30)]
    for path in paths:
        path.write_text(before)
    command = [sys.executable, "-m", "samedevice", "lint", "--fix", "--no-cache", "--jobs", "1", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while paths[written_before].read_text() == before and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    texts = [path.read_text() for path in paths]
    assert set(texts) == {before, after}
    assert texts.count(after) > written_before
    assert {path for path in tmp_path.iterdir() if not path.name.startswith(".")} == set(paths)


BLOCKS = [
    "a = torch.zeros(3).to(device)",
    "b = torch.rand(3, 4).cuda()",
    "c = torch.ones(\n    3,  # comment\n).view(1, 3).to('cuda')",
    "x.numpy()",
    "y = x + torch.ones(3)",
    "z = (torch.arange(3).to(device), x.numpy(), torch.eye(3).cuda())",
    "def f(t, device):\n\treturn t.cuda(), torch.zeros(2).to(device)",
    "d = x.pin_memory().to(device)  # é",
    "e = 'cuda:0'; f(x, torch.device('cuda:0'))",
    "x.to('cpu')",
    "print(x)  # noqa: SD103, E501",
    "# samedevice: ignore[SD101]",
    "if x:\n    # noqa: SD105\n    x.to(device)",
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(BLOCKS), max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_fixing_twice_is_fixing_once_and_adds_no_finding(blocks, end, unsafe):
    head = "import torch\ndevice = torch.device('cuda')\nx = torch.rand(3, device=device)\n"
    text = (head + "\n".join(blocks) + "\n").replace("\n", end)
    config = Config(select=("ALL",))
    mended = fix_text(text, config=config, unsafe=unsafe)
    assert fix_text(mended, config=config, unsafe=unsafe) == mended
    assert len(lint_source(mended, config=config)) <= len(lint_source(text, config=config))
    assert mended.replace(end, "").count("\n") == mended.replace(end, "").count("\r") == 0


def test_more_edits_than_anyone_counts_are_made_in_one_go():
    text = "import torch\n" + "x = torch.zeros(3).to('cuda')\n" * 400
    mended = fix_text(text, config=Config(select=("SD306",)))
    assert mended == text.replace("zeros(3).to('cuda')", "zeros(3, device='cuda')")
