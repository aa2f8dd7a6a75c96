"""Each smell's examples: flagged where it is selected and only there, mended, and no fault when they are run."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch

import samedevice.causes.smells
from samedevice.causes.catalogue import SLUGS, SMELLS, all_smells, by_code, find
from samedevice.config import Config
from samedevice.fixing import fix_text
from samedevice.linting import smells
from samedevice.linting.lint import lint_source
from samedevice.linting.silencing import UNUSED
from samedevice.running import RunOptions, run

EVERYTHING = Config(select=("ALL",))
ROOT = Path(__file__).parent.parent.parent
EXAMPLES = [
    pytest.param(smell, example, id=f"{smell.slug}-{number}")
    for smell in all_smells()
    for number, example in enumerate(smell.examples, 1)
]
SILENT = [
    pytest.param(script, id=f"{smell.slug}-{kind}-{number}")
    for smell in all_smells()
    for kind, scripts in (("right", [example.right for example in smell.examples]), ("clean", smell.clean))
    for number, script in enumerate(scripts, 1)
]


def found(text, config=EVERYTHING):
    return [(finding.code, finding.location.line) for finding in lint_source(text, "example.py", config=config)]


def test_the_catalogue_the_files_and_the_checks_agree():
    files = {path.stem for path in Path(samedevice.causes.smells.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == {smell.module for smell in all_smells()}
    assert {*smells.MODULES, UNUSED[1].replace("-", "_")} == files
    assert not SLUGS.keys() & SMELLS.keys()
    assert not set(SLUGS.values()) & set(SMELLS.values())
    for code, slug in SMELLS.items():
        assert (by_code(code).code, find(slug).slug) == (code, slug)
        assert code == UNUSED[0] or code.startswith("SD3")


@pytest.mark.parametrize("smell", all_smells(), ids=lambda smell: smell.slug)
def test_no_field_is_empty(smell):
    for text in (smell.summary, smell.why, smell.fix_safety):
        assert re.fullmatch(r'[A-Z`"].*\.', text), text
    assert smell.source.startswith("https://docs.pytorch.org/")
    assert smell.examples
    assert smell.clean
    assert smell.not_run


@pytest.mark.parametrize(("smell", "example"), EXAMPLES)
def test_wrong_is_flagged_at_the_marked_lines_and_nowhere_else(smell, example):
    assert example.marked_lines
    assert found(example.wrong_script) == [(smell.code, line) for line in example.marked_lines]


@pytest.mark.parametrize("script", SILENT)
def test_right_and_clean_are_silent(script):
    assert found(script) == []


@pytest.mark.parametrize(("smell", "example"), EXAMPLES)
def test_nothing_is_said_of_smells_where_nobody_asks(smell, example):
    default = smell.code == UNUSED[0]
    assert bool(found(example.wrong_script, Config())) is default
    assert bool(found(example.wrong_script, Config(select=("faults",)))) is default
    for asked in ("smells", "SD3", smell.code, smell.slug):
        assert found(example.wrong_script, Config(extend_select=(asked,))) == found(example.wrong_script)
    assert found(example.wrong_script, Config(select=("ALL",), ignore=(smell.slug,))) == []


@pytest.mark.parametrize(("smell", "example"), EXAMPLES)
def test_the_fix_turns_wrong_into_right(smell, example):
    fixed = fix_text(example.wrong_script, "example.py", config=EVERYTHING, unsafe=True)
    assert fixed == (example.wrong_script if smell.not_fixed else example.right)
    assert fix_text(fixed, "example.py", config=EVERYTHING, unsafe=True) == fixed


@pytest.mark.parametrize(("smell", "example"), EXAMPLES)
def test_only_what_changes_no_number_is_called_safe(smell, example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    safe = fix_text(example.wrong_script, "example.py", config=EVERYTHING)
    random = smell.code == "SD306" and "torch.randn" in example.wrong_script
    assert (safe != example.wrong_script) is (smell.fix_safety.startswith("Safe") and not random)
    printed = []
    for text in (example.wrong_script, safe):
        Path("example.py").write_text(text, encoding="utf-8")
        torch.manual_seed(0)
        assert run(RunOptions("example.py", simulate="cuda")).outcome == "ok"
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


@pytest.mark.parametrize(("smell", "example"), EXAMPLES)
def test_both_comments_silence_it(smell, example):
    for comment in (f"noqa: {smell.code}", f"samedevice: ignore[{smell.slug}]"):
        lines = example.wrong_script.splitlines()
        for number in example.marked_lines:
            lines[number - 1] += f"  # {comment}"
        assert found("\n".join(lines)) == []


@pytest.mark.parametrize(("smell", "example"), EXAMPLES)
def test_a_smell_is_no_fault(smell, example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind, text in (("wrong", example.wrong_script), ("right", example.right)):
        name = f"{smell.module}_{kind}.py"
        Path(name).write_text(text, encoding="utf-8")
        result = run(RunOptions(name, simulate="cuda"))
        assert (result.outcome, result.status, result.report.findings) == ("ok", 0, ())


@pytest.mark.parametrize(
    ("code", "line", "mended"),
    [
        ("SD301", "def f(x, device): return x.cuda(non_blocking=True)", "return x.to(device, non_blocking=True)"),
        ("SD301", "def f(x, device): return x.cuda(0)", "return x.to(device)"),
        ("SD301", "def f(x): return x.cuda()", None),
        ("SD301", "def f(x, device): return x.npu()", "return x.to(device)"),
        ("SD302", "torch.device('cuda:0')", "torch.device('cuda')"),
        ("SD302", "torch.device(device=r'xpu:0')", "torch.device(device=r'xpu')"),
        ("SD302", "torch.device('cuda:1')", None),
        ("SD306", "torch.zeros(3, dtype=torch.long).to('cuda')", "torch.zeros(3, dtype=torch.long, device='cuda')"),
        ("SD306", "torch.zeros((3, 4),).to(torch.device('mps'))", "torch.zeros((3, 4), device=torch.device('mps'),)"),
        ("SD306", "(torch.ones(3)).cuda()", 'torch.ones(3, device="cuda")'),
        ("SD306", "torch.ones(3).xpu()", 'torch.ones(3, device="xpu")'),
        ("SD306", "torch.arange(3).view(1, 3).to(x.device)", "torch.arange(3, device=x.device).view(1, 3)"),
        ("SD306", "torch.tensor([1, 2]).to(device)", "torch.tensor([1, 2], device=device)"),
        ("SD306", "torch.zeros(3).to('cuda', non_blocking=True)", None),
        ("SD304", "for x in y: z = torch.from_numpy(f(x.cpu().numpy())).to(device)", None),
        ("SD304", "for x in y:\n    x = x.to('cpu')\n    x = g(x)\n    z = x.cuda()", None),
        ("SD307", "x.pin_memory().to(device)", "x.pin_memory().to(device, non_blocking=True)"),
    ],
)
def test_other_forms(code, line, mended):
    text = f"import torch\n{line}\n"
    (finding,) = lint_source(text, config=Config(select=(code,)))
    assert finding.code == code
    fixed = fix_text(text, config=Config(select=(code,)), unsafe=True)
    assert (mended in fixed) if mended else fixed == text


@pytest.mark.parametrize(
    "line",
    [
        "model.to(device)",
        "torch.zeros(3).to(torch.float64)",
        "torch.zeros(3).to(x)",
        "torch.tensor(array).to(device)",
        "torch.zeros(3, requires_grad=True).to(device)",
        "torch.zeros(3, device='cpu').to(device)",
        "torch.zeros(3).cpu()",
        "torch.zeros(3).mean().to(device)",
        "numpy.zeros(3).to(device)",
        "if x.device == 'cuda:0': pass",
        "memory = {'cuda:0': '10GB'}",
        "'cuda:0'",
        "for x in y: z = x.cpu()",
        "for x in y: total += x.item()",
        "for x in y:\n    loss.backward()\n    if x: print(loss.item())",
        "torch.cuda.is_available()",
        "for x in loader: x = x.to(device)",
        "x.pin_memory().to('cpu')",
        "x.pin_memory().to(device, non_blocking=False)",
    ],
)
def test_what_looks_alike_is_none(line):
    assert found(f"import numpy\nimport torch\n{line}\n", Config(select=("SD3",))) == []


def test_the_pages_are_those_that_the_catalogue_gives():
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
    make_docs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_docs)
    pages = ROOT / "docs" / "smells"
    assert (pages / "index.md").read_text(encoding="utf-8") == make_docs.smell_index()
    for smell in all_smells():
        assert (pages / f"{smell.slug}.md").read_text(encoding="utf-8") == make_docs.page(smell)
    assert len(list(pages.glob("*.md"))) == len(SMELLS) + 1
