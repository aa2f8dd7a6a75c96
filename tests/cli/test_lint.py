import json
from pathlib import Path

import pytest

from samedevice.cli.main import main

WRONG = "import torch\n\nx = torch.rand(3)\nx.cuda()\nprint(x + torch.rand(3, device='cuda'))\n"
MENDED = WRONG.replace("x.cuda()", "x = x.cuda()")
CLEAN = "import torch\n\nprint(torch.rand(3))\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wrong.py").write_text(WRONG, encoding="utf-8")
    Path("clean.py").write_text(CLEAN, encoding="utf-8")
    return tmp_path


def lint_json(capsys, *arguments):
    status = main(["lint", "--format", "json", *arguments])
    return status, json.loads(capsys.readouterr().out)


def test_nothing_found(folder, capsys):
    assert main(["lint", "clean.py"]) == 0
    assert capsys.readouterr() == ("No device fault found\n", "")


def test_findings(folder, capsys):
    assert main(["lint", "."]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("wrong.py:4:1: SD105 ")
    assert "\x1b" not in printed.out
    assert printed.err == ""


def test_json(folder, capsys):
    status, data = lint_json(capsys, "wrong.py", "clean.py")
    assert status == 1
    (finding,) = data["findings"]
    assert (finding["code"], finding["cause"]) == ("SD105", "result-discarded")
    assert finding["location"]["line"] == 4
    assert finding["fix"]["edits"] == [
        {"file": "wrong.py", "line": 4, "end_line": 4, "old": "x.cuda()", "new": "x = x.cuda()"}
    ]


def test_files_that_cannot_be_read_or_parsed_are_named_and_the_others_checked(folder, capsys):
    Path("broken.py").write_text("import torch\nx = = 1\n", encoding="utf-8")
    status, data = lint_json(capsys, "none.py", "broken.py", "wrong.py")
    assert status == 2
    assert [error["file"] for error in data["errors"]] == ["none.py", "broken.py"]
    assert [finding["code"] for finding in data["findings"]] == ["SD105"]


@pytest.mark.parametrize(("form", "start"), [("sarif", "{"), ("github", "::error title=SD105")])
def test_other_formats(folder, capsys, form, start):
    assert main(["lint", "--format", form, "wrong.py"]) == 1
    assert capsys.readouterr().out.startswith(start)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--select", "SD105"], 1),
        (["--select", "SD2,result-discarded"], 1),
        (["--select", "SD2"], 0),
        (["--ignore", "SD1"], 0),
        (["--ignore", "result-discarded"], 0),
        (["--select", "ALL", "--ignore", "SD106"], 1),
    ],
)
def test_select_and_ignore(folder, arguments, status):
    assert main(["lint", *arguments, "wrong.py"]) == status


def test_settings_of_the_project(folder):
    Path("pyproject.toml").write_text('[tool.samedevice]\nignore = ["SD105"]\n', encoding="utf-8")
    assert main(["lint", "wrong.py"]) == 0
    assert main(["lint", "."]) == 0
    assert main(["lint", "--select", "SD105", "wrong.py"]) == 0
    Path("pyproject.toml").write_text('[tool.samedevice]\nselect = ["SD2"]\n', encoding="utf-8")
    assert main(["lint", "wrong.py"]) == 0
    assert main(["lint", "--select", "SD105", "wrong.py"]) == 1


def test_an_unknown_code_in_the_settings_is_wrong_usage(folder, capsys):
    Path("pyproject.toml").write_text('[tool.samedevice]\nignore = ["SD777"]\n', encoding="utf-8")
    assert main(["lint", "wrong.py"]) == 2
    assert "pyproject.toml: no cause is called 'SD777'" in capsys.readouterr().err


def test_an_unknown_code_on_the_command_line_names_no_file(folder, capsys):
    assert main(["lint", "--ignore", "SD777", "wrong.py"]) == 2
    assert capsys.readouterr().err.startswith("samedevice lint: no cause is called 'SD777'")


def test_unsafe_by_itself_is_wrong_usage(folder, capsys):
    assert main(["lint", "--unsafe", "wrong.py"]) == 2
    assert "--fix or --diff" in capsys.readouterr().err
    assert Path("wrong.py").read_text(encoding="utf-8") == WRONG


def test_fix_writes_the_safe_edits_and_reports_what_is_left(folder, capsys):
    assert main(["lint", "--fix", "."]) == 0
    assert Path("wrong.py").read_text(encoding="utf-8") == MENDED
    assert Path("clean.py").read_text(encoding="utf-8") == CLEAN
    assert capsys.readouterr() == ("No device fault found\n", "wrong.py: mended\n")


def test_diff_shows_the_edits_and_changes_nothing(folder, capsys):
    assert main(["lint", "--diff", "."]) == 1
    assert Path("wrong.py").read_text(encoding="utf-8") == WRONG
    assert "-x.cuda()\n+x = x.cuda()\n" in capsys.readouterr().out


def test_fix_and_diff_exclude_one_another(folder, capsys):
    assert main(["lint", "--fix", "--diff", "."]) == 2
    assert "not allowed with argument" in capsys.readouterr().err
