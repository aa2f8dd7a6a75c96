"""What the commands print, for readers of English and of Chinese."""

import json
import re

import pytest

from samedevice.causes.catalogue import all_causes, all_smells
from samedevice.cli.main import COMMANDS, main
from samedevice.reports.columns import width
from samedevice.texts import Text, shown

ENGLISH = re.compile(r"\b(the|an?|is|are|was|were|of|with|from|that|which|it|not|no|and|or)\b")


def english_in(text):
    """English function words outside of code, of what stands in quotes and of lines that show a command."""
    prose = re.sub(r"`[^`]*`|\"[^\"]*\"|'[^']*'|--?\w[\w-]*|\w+(\.\w+)+", " ", text)
    return ENGLISH.findall("\n".join(line for line in prose.splitlines() if "samedevice" not in line))


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setenv("SAMEDEVICE_LANG", "zh_CN")


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)], ids=str)
def test_help(chinese, capsys, arguments):
    assert main([*arguments, "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("用法：samedevice")
    assert english_in(printed) == []
    assert "示例：" in printed
    assert max(map(width, printed.splitlines())) <= 120


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["rnu"], "samedevice: 没有命令 'rnu'；可能想写 `run`；请参阅 `samedevice --help`"),
        (["run"], "samedevice run: 需要指定脚本；请参阅 `samedevice run --help`"),
        (["run", "--simulat", "x.py"], "samedevice run: 无法识别的参数：--simulat；请参阅 `samedevice run --help`"),
        (["lint"], "samedevice lint: 缺少必需的参数：PATH；请参阅 `samedevice lint --help`"),
        (["lint", "--format"], "samedevice lint: 选项 --format：需要一个值；请参阅 `samedevice lint --help`"),
        (["lint", "--fix", "--diff", "x"], "samedevice lint: 选项 --diff：不能与 --fix 同时使用；"),
        (["doctor", "--format", "xml"], "samedevice doctor: 选项 --format：无效的值 'xml'（可选："),
        (
            ["causes", "SD13"],
            "samedevice causes: 没有名为 'SD13' 的原因；可能想写 SD113（`samedevice causes` 会列出全部）；",
        ),
        (["inspect", "."], "samedevice inspect: 无法读取 .：它是文件夹或设备文件，这里只读取单个文件"),
        (["explain", "none.txt"], "samedevice explain: 无法读取 none.txt：No such file or directory；"),
        (["fix", "--simulate", "cuda"], "samedevice fix: 需要指定脚本；请参阅 `samedevice fix --help`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage(chinese, tmp_path, monkeypatch, capsys, arguments, printed):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(printed)


@pytest.mark.parametrize("cause", [*all_causes(), *all_smells()], ids=lambda cause: cause.slug)
def test_a_cause(chinese, capsys, cause):
    for text in (cause.summary, cause.why, cause.fix_safety, cause.not_static, cause.not_run, cause.not_fixed):
        assert text is None or (isinstance(text, Text) and re.search(r"[\u4e00-\u9fff]", shown(text)))
        assert text is None or english_in(shown(text)) == []
    assert main(["causes", cause.code]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{cause.code} {cause.slug}\n")
    assert "错误写法（`# !` 标出问题所在的行）" in printed
    assert cause.examples[0].right.strip().splitlines()[-1] in printed


def test_all_causes_are_listed_in_columns(chinese, capsys):
    assert main(["causes"]) == 0
    printed = capsys.readouterr().out
    assert "SD103  plain-attribute           作为模块普通属性保存的张量" in printed
    assert max(map(width, printed.splitlines())) <= 100


def test_doctor(chinese, capsys):
    main(["doctor"])
    printed = capsys.readouterr().out
    assert re.search(r"(?m)^正常   模拟           可用：有两个模拟设备", printed)
    assert english_in(printed) == []


def test_machines_read_english(chinese, capsys):
    main(["doctor", "--format", "json"])
    lines = json.loads(capsys.readouterr().out)["lines"]
    assert "simulation" in {line["topic"] for line in lines}
    assert not [line for line in lines if re.search(r"[\u4e00-\u9fff]", line["text"])]


def test_a_checkpoint(chinese, tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": torch.zeros(3)}, "a.pt")
    assert main(["inspect", "a.pt"]) == 0
    assert capsys.readouterr().out.startswith("a.pt：zip，1 个张量，12 B\n  cpu：1 个张量，12 B\n")
    (tmp_path / "b.pt").write_text("<html>")
    assert main(["inspect", "b.pt"]) == 2
    assert capsys.readouterr().err == "samedevice inspect: 无法读取 b.pt：它是一个网页，可能是下载失败留下的\n"


BUG = "import torch\n\nx = torch.rand(3)\nx.to('cuda')\nprint(x)\n"
FOUND = """\
a.py:4:1: SD105 `x.to('cuda')` 的返回值被丢弃；`x` 本身仍在原来的设备上
    x.to('cuda')
    ^^^^^^^^^^^^
    修复：x = x.to('cuda')
发现 1 个设备问题
"""


def test_lint_finds_the_same_in_its_cache(chinese, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(BUG)
    for _ in range(2):
        assert main(["lint", "--cache-dir", "cache", "a.py"]) == 1
        assert capsys.readouterr().out == FOUND
    monkeypatch.setenv("SAMEDEVICE_LANG", "en")
    assert main(["lint", "--cache-dir", "cache", "a.py"]) == 1
    assert "the result of `x.to('cuda')` is dropped" in capsys.readouterr().out


def test_lines_of_a_notebook_are_those_of_its_cells(chinese, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sources = [
        "import torch\nimages = torch.ones(3, device='cuda')\n",
        "table = torch.ones(3).cuda(1)\n",
        "images + table\n",
    ]
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert main(["lint", "--no-cache", "a.ipynb"]) == 1
    assert "（单元格 3 第 1 行）" in capsys.readouterr().out


def test_a_file_that_cannot_be_read(chinese, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("import torch\nx = (\n")
    assert main(["lint", "--no-cache", "a.py", "none.py"]) == 2
    assert "a.py：第 2 行：'(' was never closed" in capsys.readouterr().out.replace("a.py: ", "a.py：")


def test_fix(chinese, tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(BUG + "x + torch.ones(3, device='cuda')\n")
    assert main(["fix", "--simulate", "cuda", "a.py"]) == 0
    assert capsys.readouterr().err == "a.py：已作 1 处修改，现在没有问题\n  a.py:4: x = x.to('cuda')\n"
