import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import samedevice
from samedevice.cli.main import COMMANDS, main

DOCS = Path(__file__).parent.parent.parent / "docs" / "cli.md"


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"samedevice {samedevice.__version__}\n"


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), (["-h"], 0), (["help"], 0), ([], 2)])
def test_help_lists_every_command(capsys, arguments, status):
    assert main(arguments) == status
    printed = capsys.readouterr().out
    assert all(re.search(rf"^  {name} ", printed, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_examples_and_a_place_in_the_documentation(capsys, name):
    assert main([name, "--help"]) == 0
    printed = capsys.readouterr().out
    assert f"usage: samedevice {name}" in printed
    assert f"examples:\n  samedevice {name}" in printed or "| samedevice explain" in printed
    assert max(map(len, printed.splitlines())) <= 120
    documented = DOCS.read_text(encoding="utf-8").split(f"\n## {name}\n")[1].split("\n## ")[0]
    for option in re.findall(r"^\s+(--[a-z-]+)", printed, re.MULTILINE):
        assert option in documented or option == "--help"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], "samedevice: there is no command 'rnu'; you may mean `run`; see `samedevice --help`"),
        (["zzz"], "samedevice: there is no command 'zzz'; commands are run, lint"),
        (["run"], "samedevice run: expected a script; see `samedevice run --help`"),
        (["run", "-m"], "samedevice run: expected a module after -m"),
        (["run", "--simulat", "cuda", "x.py"], "samedevice run: unrecognized arguments: --simulat"),
        (["run", "none.py"], "samedevice run: cannot open none.py: No such file or directory"),
        (["run", "--json", ".", "x.py"], "samedevice run: cannot write "),
        (["lint"], "samedevice lint: the following arguments are required: PATH"),
        (["lint", "--select", "SD9x", "x.py"], "samedevice lint: no cause is called 'SD9x'"),
        (["lint", "--format", "xml", "x.py"], "samedevice lint: argument --format: invalid choice: 'xml'"),
        (["explain", "none.txt"], "samedevice explain: cannot read none.txt: No such file or directory"),
        (["inspect", "none.pt"], "samedevice inspect: cannot read none.pt: No such file or directory"),
        (["causes", "SD13"], "samedevice causes: no cause is called 'SD13'; did you mean SD113?"),
        (["doctor", "x"], "samedevice doctor: unrecognized arguments: x"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(message)
    assert printed.err.count("\n") == 1


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m samedevice causes SD103 | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode in (0, 1), done.stderr) == (True, "")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["causes"]])
def test_a_console_without_unicode_is_enough(arguments):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "samedevice", *arguments]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_one_line():
    command = f"{sys.executable} -m samedevice causes SD103 > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "samedevice: [Errno 28] No space left on device\n")
