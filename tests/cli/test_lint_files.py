"""What `samedevice lint` does with the files of a messy project, and with standard input."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from samedevice.cli.main import main

BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.numpy()\n'
MENDED = BUG.replace("x.numpy()", "x.cpu().numpy()")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lint_json(capsys, *arguments):
    status = main(["lint", "--format", "json", *arguments])
    return status, json.loads(capsys.readouterr().out)


def test_the_code_is_shown_with_carets(folder, capsys):
    Path("a.py").write_text(BUG)
    assert main(["lint", "a.py"]) == 1
    assert capsys.readouterr().out == (
        "a.py:3:5: SD112 `x` is on cuda; numpy needs it on the CPU\n"
        "    y = x.numpy()\n"
        "        ^^^^^^^^^\n"
        "    Mend: x.cpu()\n"
        "1 device fault\n"
    )


def test_a_notebooks_cell_is_named(folder, capsys):
    cell = {"cell_type": "code", "metadata": {}, "source": BUG}
    text = {"cell_type": "markdown", "metadata": {}, "source": ""}
    Path("a.ipynb").write_text(json.dumps({"cells": [text, cell]}))
    assert main(["lint", "."]) == 1
    assert capsys.readouterr().out.startswith("a.ipynb:cell 2:3:5: SD112 ")
    _, data = lint_json(capsys, "a.ipynb")
    assert (data["findings"][0]["location"]["cell"], data["findings"][0]["location"]["line"]) == (2, 3)
    assert data["findings"][0]["fix"]["edits"][0]["cell"] == 2


BROKEN = {
    "null.py": b"import torch\0\n",
    "syntax.py": b"import torch\nx = = 1\n",
    "python2.py": b"import torch\nprint 'x'\n",
    "future.py": b"import torch\nmatch x with: pass\n",
    "utf8.py": b"import torch\nx = '\xff'\n",
    "cookie.py": b"# coding: no-such\nimport torch\n",
    "rot13.py": b"# coding: rot13\nimport torch\n",
    "undefined.py": b"# coding: undefined\nimport torch\n",
    "idna.py": b"# coding: idna\nimport torch\nx = '\xff..'\n",
    "bomcookie.py": b"\xef\xbb\xbf# coding: latin-1\nimport torch\n",
    "utf16.py": "import torch\n".encode("utf-16") + b"torch",
    "tabs.py": b"import torch\nif x:\n\ty\n        z\n",
    "brackets.py": b"import torch\nx = " + b"(" * 250 + b")" * 250 + b"\n",
    "notebook.ipynb": b"torch",
    "list.ipynb": b'["torch"]',
}


def test_what_cannot_be_parsed_is_named_once_and_stops_no_other(folder, capsys):
    for name, data in BROKEN.items():
        Path(name).write_bytes(data)
    Path("good.py").write_text(BUG)
    status, data = lint_json(capsys, ".")
    assert status == 2
    assert [finding["location"]["file"] for finding in data["findings"]] == ["good.py"]
    assert [error["file"] for error in data["errors"]] == sorted(BROKEN)
    assert all(error["message"] and "\n" not in error["message"] for error in data["errors"])
    assert "report it" not in str(data["errors"])


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
def test_links_pipes_and_folders_with_names_of_files(folder, capsys):
    Path("dangling.py").symlink_to("nowhere.py")
    Path("loop.py").symlink_to("loop.py")
    os.mkfifo("pipe.py")
    Path("folder.py").mkdir()
    Path("folder.py/good.py").write_text(BUG)
    Path("folder.py/self").symlink_to(".")
    Path("twice.py").symlink_to("folder.py/good.py")
    status, data = lint_json(capsys, ".")
    assert status == 2
    assert [finding["location"]["file"] for finding in data["findings"]] == ["folder.py/good.py"]
    assert {error["file"]: error["message"] for error in data["errors"]} == {
        "dangling.py": "cannot be read: No such file or directory",
        "loop.py": "cannot be read: Too many levels of symbolic links",
        "pipe.py": "cannot be read: it is no regular file",
    }


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read(folder, capsys):
    Path("a.py").write_text(BUG)
    Path("a.py").chmod(0)
    Path("closed").mkdir(mode=0)
    status, data = lint_json(capsys, ".")
    assert status == 2
    assert [error["message"] for error in data["errors"]] == ["cannot be read: Permission denied"] * 2


def test_a_huge_file_is_not_read(folder, capsys):
    with Path("huge.py").open("wb") as file:
        file.truncate(30_000_000)
    status, data = lint_json(capsys, ".")
    assert (status, data["errors"][0]["message"]) == (2, "larger than 20 MB; not read")


def test_names_that_are_no_text(folder, capsys):
    name = os.fsdecode(b"\xff\n.py")
    try:
        Path(name).write_text(BUG)
    except OSError:
        pytest.skip("the file system takes no such names")
    for form in ("text", "json", "sarif", "github"):
        assert main(["lint", "--format", form, "."]) == 1
        assert "SD112" in capsys.readouterr().out


def test_force_exclude_passes_by_what_a_commit_hook_names(folder, capsys):
    Path("pyproject.toml").write_text('[tool.samedevice]\nexclude = ["legacy"]\n')
    Path("legacy").mkdir()
    Path("legacy/a.py").write_text(BUG)
    assert main(["lint", "legacy/a.py"]) == 1
    assert main(["lint", "--force-exclude", "legacy/a.py"]) == 0


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], 0),
        (["--select", "smells"], 1),
        (["--extend-select", "SD3"], 1),
        (["--extend-select", "made-then-moved"], 1),
        (["--select", "ALL", "--ignore", "smells"], 0),
        (["--select", "faults"], 0),
        (["--select", "SD"], 1),
    ],
)
def test_smells_are_looked_for_where_they_are_asked_for(folder, arguments, status):
    Path("a.py").write_text("import torch\nx = torch.zeros(3).to('cuda')\n")
    assert main(["lint", *arguments, "a.py"]) == status


def test_smells_by_the_settings(folder):
    Path("a.py").write_text("import torch\nx = torch.zeros(3).to('cuda')\n")
    Path("pyproject.toml").write_text('[tool.samedevice]\nextend-select = ["smells"]\n')
    assert main(["lint", "a.py"]) == 1
    assert main(["lint", "--select", "faults", "a.py"]) == 0
    Path("pyproject.toml").write_text(
        '[tool.samedevice]\nextend-select = ["smells"]\n[tool.samedevice.per-file-ignores]\n"a.*" = ["smells"]\n'
    )
    assert main(["lint", "a.py"]) == 0


def test_the_cache_and_processes_change_nothing(folder, capsys):
    for number in range(40):
        Path(f"a{number}.py").write_text(f"{BUG}#{number}\n")
    first = lint_json(capsys, "--no-cache", "--jobs", "1", ".")
    for arguments in (["--jobs", "2"], ["--jobs", "2"], [], ["--cache-dir", "kept"]):
        assert lint_json(capsys, *arguments, ".") == first
    # More where somebody edits the linter while this runs: its files are part of each entry's name.
    assert len(list(Path("kept/lint").glob("??/*"))) >= 40
    assert len(list(Path(os.environ["SAMEDEVICE_CACHE_DIR"]).glob("lint/??/*"))) >= 40


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_a_number_of_processes_is_one(folder, capsys, number):
    assert main(["lint", f"--jobs={number}", "."]) == 2
    assert "--jobs" in capsys.readouterr().err


class _Stream(io.StringIO):
    """Standard input with bytes below it."""

    def __init__(self, data):
        super().__init__()
        self.buffer = io.BytesIO(data)


@pytest.fixture
def given(monkeypatch):
    return lambda data: monkeypatch.setattr(sys, "stdin", _Stream(data))


def test_standard_input(folder, given, capsys):
    given(BUG.encode())
    assert main(["lint", "-"]) == 1
    assert capsys.readouterr().out.startswith("<stdin>:3:5: SD112 ")
    given(BUG.encode())
    status, data = lint_json(capsys, "--stdin-filename", "src/a.py", "-")
    assert (status, data["findings"][0]["location"]["file"]) == (1, "src/a.py")


def test_standard_input_has_the_settings_of_its_name(folder, given):
    Path("src").mkdir()
    Path("src/pyproject.toml").write_text('[tool.samedevice.per-file-ignores]\n"a.py" = ["SD112"]\n')
    for name, status in (("src/a.py", 0), ("src/b.py", 1), ("a.py", 1)):
        given(BUG.encode())
        assert main(["lint", "--stdin-filename", name, "-"]) == status


def test_standard_input_that_is_no_python(folder, given, capsys):
    given(b"import torch\nx = (")
    assert main(["lint", "-"]) == 2
    assert "<stdin>: line 2: '(' was never closed" in capsys.readouterr().out
    given(b"import torch\nx = (")
    assert main(["lint", "--fix", "-"]) == 2
    assert capsys.readouterr() == ("import torch\nx = (", "<stdin>: line 2: '(' was never closed\n")


def test_standard_input_is_mended_to_standard_output(folder, given, capfdbinary):
    data = b"\xef\xbb\xbf" + BUG.replace("\n", "\r\n").encode() + "# é".encode()
    given(data)
    assert main(["lint", "--fix", "-"]) == 0
    assert capfdbinary.readouterr() == (data.replace(b"x.numpy()", b"x.cpu().numpy()"), b"")
    given(data)
    assert main(["lint", "--diff", "--stdin-filename", "a.py", "-"]) == 1
    assert capfdbinary.readouterr().out.startswith(
        b"--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,4 @@\n \xef\xbb\xbfimport torch\r\n"
    )


def test_standard_input_alone(folder, given, capsys):
    assert main(["lint", "-", "a.py"]) == 2
    assert "standard input" in capsys.readouterr().err


def test_the_command_itself(folder):
    """The pipes, the exit status, and no traceback, in a process of its own."""
    Path("a.py").write_text(BUG)
    command = [sys.executable, "-m", "samedevice", "lint", "--no-cache"]
    done = subprocess.run([*command, "-"], input=BUG, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("<stdin>:3:5: SD112 ")
    done = subprocess.run([*command, "."], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(("text", "runs"), [("x = 1\n", 1), (BUG, 2)], ids=["without torch", "in the cache"])
def test_what_needs_no_rules_loads_none(folder, text, runs):
    Path("a.py").write_text(text)
    program = (
        "import sys\nfrom samedevice.cli.main import main\nmain(['lint', 'a.py'])\n"
        "print(*(name for name in sys.modules if 'linting.' in name or name in ('ast', 'tokenize', 'tomllib')))"
    )
    for _ in range(runs):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "samedevice.linting.lint" in loaded
    assert not {"samedevice.linting.checking", "samedevice.linting.rule", "tomllib"} & loaded
    assert not any(name.startswith("samedevice.linting.devices") for name in loaded)


def test_a_file_that_somebody_else_changes_meanwhile_is_left_alone(folder, capsys, monkeypatch):
    from samedevice.fixing import files

    Path("a.py").write_text(BUG)
    fix_text = files.fix_text

    def slow(*arguments, **options):
        Path("a.py").write_text("# mine\n" + BUG)
        return fix_text(*arguments, **options)

    monkeypatch.setattr(files, "fix_text", slow)
    assert main(["lint", "--fix", "a.py"]) == 2
    assert Path("a.py").read_text() == "# mine\n" + BUG
    assert "a.py: not mended: a.py was changed by somebody else meanwhile" in capsys.readouterr().out
