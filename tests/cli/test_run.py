"""The command around `running`: its options, what it prints and where, the reports that it writes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from samedevice.cli.main import main

CLEAN = "import torch\nprint(torch.zeros(2, device='cuda').device)\n"
WRONG = """\
import torch
from torch import nn

model = nn.Linear(4, 2).to("cuda")
images = torch.rand(8, 4)
logits = model(images)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("clean_script.py").write_text(CLEAN, encoding="utf-8")
    Path("wrong_script.py").write_text(WRONG, encoding="utf-8")
    return tmp_path


def test_a_fault_is_explained_on_standard_error_after_the_traceback(folder, capsys):
    assert main(["run", "--simulate", "cuda", "wrong_script.py"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    traceback, explanation = printed.err.split("\n\n", 1)
    assert traceback.startswith("Traceback (most recent call last):")
    assert traceback.splitlines()[-1].startswith("RuntimeError: Expected all tensors to be on the same device")
    assert "  at wrong_script.py:6 in <module>: logits = model(images)" in explanation
    assert "images: cpu, float32[8, 4]; from wrong_script.py:5" in explanation
    assert "Cause SD101 input-not-moved" in explanation
    assert "1 device fault in wrong_script.py on simulated cuda:0" in explanation
    assert "\x1b" not in printed.err


def test_a_clean_simulated_run_says_so_on_standard_error(folder, capsys):
    assert main(["run", "--simulate", "cuda", "clean_script.py"]) == 0
    assert capsys.readouterr() == (
        "cuda:0\n",
        "samedevice: No device fault found in clean_script.py on simulated cuda:0\n",
    )


def test_a_run_without_simulation_is_as_silent_as_python(folder, capsys):
    Path("hello.py").write_text("print('hello')", encoding="utf-8")
    assert main(["run", "hello.py"]) == 0
    assert capsys.readouterr() == ("hello\n", "")


def test_reports_are_written_wherever_they_are_asked_for(folder):
    reports = ["--json", "out/r.json", "--html=out/r.html", "--sarif", "out/r.sarif"]
    assert main(["run", "--simulate", "cuda:2", *reports, "wrong_script.py"]) == 1
    data = json.loads(Path("out/r.json").read_text(encoding="utf-8"))
    assert (data["outcome"], data["script"], data["simulated"]) == ("finding", "wrong_script.py", ["cuda:0", "cuda:1"])
    (finding,) = data["findings"]
    assert (finding["location"]["file"], finding["location"]["line"]) == ("wrong_script.py", 6)
    assert (finding["culprit"]["name"], finding["culprit"]["device"]) == ("images", "cpu")
    assert finding["expected_device"] == "cuda:0"
    assert Path("out/r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(Path("out/r.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("script", "status", "outcome"),
    [
        ("import sys; sys.exit(3)", 3, "error"),
        ("1 / 0", 1, "error"),
        ("x = = 1", 1, "error"),
        ("import os; os.mkdir('below'); os.chdir('below')", 0, "ok"),
        ("raise KeyboardInterrupt", 130, "error"),
    ],
)
def test_the_report_is_written_however_the_script_ends(folder, script, status, outcome):
    Path("ends.py").write_text(script, encoding="utf-8")
    assert main(["run", "--json", "r.json", "ends.py"]) == status
    assert json.loads((folder / "r.json").read_text(encoding="utf-8"))["outcome"] == outcome


def test_a_report_of_an_earlier_run_is_taken_away(folder):
    Path("r.json").write_text("{}", encoding="utf-8")
    Path("killed.py").write_text("import os; os._exit(9)", encoding="utf-8")
    command = [sys.executable, "-m", "samedevice", "run", "--json", "r.json", "killed.py"]
    assert subprocess.run(command, check=False).returncode == 9
    assert not Path("r.json").exists()


def test_options_after_the_script_are_the_scripts(folder, capsys):
    Path("arguments.py").write_text("import sys; print(sys.argv)", encoding="utf-8")
    assert main(["run", "--no-origins", "arguments.py", "--json", "x", "-m", "--", "--help"]) == 0
    assert main(["run", "--", "arguments.py"]) == 0
    assert capsys.readouterr().out == "['arguments.py', '--json', 'x', '-m', '--', '--help']\n['arguments.py']\n"


@pytest.mark.parametrize("command", ["run", "fix"])
def test_a_program_from_standard_input_is_refused(folder, capsys, command):
    assert main([command, "-"]) == 2
    assert "standard input" in capsys.readouterr().err


def test_a_module_and_its_arguments(folder, capsys):
    assert main(["run", "-m", "arguments_module", "--json", "x"]) == 2
    Path("arguments_module.py").write_text("import sys; print(sys.argv[1:])", encoding="utf-8")
    assert main(["run", "-m", "arguments_module", "--json", "x"]) == 0
    assert capsys.readouterr().out == "['--json', 'x']\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_the_report_to_its_parent(folder):
    Path("forks.py").write_text(
        "import os\nif os.fork() == 0:\n    import sys; sys.exit(5)\nos.wait()\n", encoding="utf-8"
    )
    command = [sys.executable, "-m", "samedevice", "run", "--json", "r.json", "forks.py"]
    assert subprocess.run(command, check=False).returncode == 0
    assert json.loads(Path("r.json").read_text(encoding="utf-8"))["outcome"] == "ok"


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_the_process_as_it_ends_python(folder):
    Path("interrupted.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)\n", encoding="utf-8")
    codes = [
        subprocess.run([sys.executable, *command, "interrupted.py"], capture_output=True, check=False).returncode
        for command in ([], ["-m", "samedevice", "run"])
    ]
    assert codes == [-signal.SIGINT, -signal.SIGINT]


def test_colours_only_where_they_are_wanted(folder, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    main(["run", "--simulate", "cuda", "wrong_script.py"])
    assert "\x1b[" in capsys.readouterr().err
    monkeypatch.setenv("NO_COLOR", "1")
    main(["run", "--simulate", "cuda", "wrong_script.py"])
    assert "\x1b[" not in capsys.readouterr().err


def test_a_report_never_replaces_the_script_or_another_report(folder, capsys):
    assert main(["run", "--json", "./wrong_script.py", "wrong_script.py"]) == 2
    assert main(["run", "--json", "r", "--html", "./r", "wrong_script.py"]) == 2
    assert Path("wrong_script.py").read_text(encoding="utf-8") == WRONG
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("samedevice run: cannot write ./wrong_script.py: that is the script")
    assert second.startswith("samedevice run: cannot write ./r: that is the file of --json")


def test_a_report_to_a_link_or_a_device_leaves_it_in_place(folder):
    Path("r.json").symlink_to("kept.json")
    Path("fails.py").write_text("1 / 0", encoding="utf-8")
    assert main(["run", "--json", "r.json", "--html", os.devnull, "--sarif", os.devnull, "fails.py"]) == 1
    assert json.loads(Path("kept.json").read_text(encoding="utf-8"))["outcome"] == "error"
    assert Path("r.json").is_symlink()
    assert not Path(os.devnull).is_file()


def test_a_report_that_cannot_be_written_is_refused_before_the_script_runs(folder, capsys):
    Path("writes.py").write_text("print('ran')", encoding="utf-8")
    for file in ("writes.py/r.json", ".", ""):
        assert main(["run", "--json", file, "writes.py"]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "taken", ["sys.stderr = io.StringIO()", "sys.stdout = sys.stderr = None", "sys.stdout.close()"]
)
def test_the_explanation_reaches_standard_error_whatever_the_script_does_to_its_streams(folder, taken):
    Path("taken.py").write_text(f"import io, sys\n{taken}\n{WRONG}", encoding="utf-8")
    command = [sys.executable, "-m", "samedevice", "run", "--simulate", "cuda", "taken.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Cause SD101 input-not-moved" in done.stderr
    assert "in main" not in done.stderr


@pytest.mark.parametrize("name", [".relative", "__main__"])
def test_a_module_that_has_no_name_of_its_own_is_wrong_usage(folder, capsys, name):
    assert main(["run", "-m", name]) == 2
    assert capsys.readouterr().err.startswith(f"samedevice run: cannot run {name}: a module is named from the top")
