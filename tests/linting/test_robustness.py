"""Whatever the text is, linting it ends in findings or in a `SourceError`."""

import ast
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samedevice.linting.lint import lint, lint_source
from samedevice.linting.source import SourceError

CASES = sorted((Path(__file__).parents[1] / "casebook" / "cases").glob("*/buggy.py"))
NODES = [
    "torch.zeros(3)", "x", "self", "None", "lambda: x", "[x for x in y]", "{**x}", "f'{x:{y}}'", "x[...]", "(yield)",
    "torch", "nn.Linear(1, 1)", "model", "optimizer", "x.to(device)", "super()", "1 if x else y", "print", "-x",
]  # fmt: skip


def linted(text):
    try:
        return lint_source(text)
    except SourceError:
        return None


@pytest.mark.parametrize("text", ["x = " + "-" * 10_000 + "torch", "torch" + ".a" * 10_000, "torch" + "()" * 3_000])
def test_deep_expressions_end(text):
    linted(text + "\n")


@pytest.mark.parametrize(
    "text",
    [
        "type X = torch.Tensor",
        "x = t'{torch.ones(1)}'",
        "try:\n    torch\nexcept A, B:\n    pass",
        "def f[T: torch.Tensor = int](x: T): pass",
        "lazy import torch",
        "print 'torch'",
    ],
)
def test_syntax_of_other_versions_ends(text):
    assert not linted(text + "\n")


def test_deep_blocks_and_recursion_end():
    linted(
        "import torch\n" + "".join("\t" * depth + "if x:\n" for depth in range(90)) + "\t" * 90 + "y = torch.zeros(1)\n"
    )
    assert linted("import torch\ndef f(x):\n    return f(x + torch.ones(1))\nf(torch.ones(1))\n") == ()
    assert linted("import torch\nclass A(A): pass\nclass B:\n    def __init__(self): self.b = B()\nB()\n") == ()


def test_a_chain_of_many_elifs_is_followed():
    """In the tree each `elif` is inside the one before; generated parsers and dispatchers have hundreds."""
    chain = "".join(f"    elif kind == {number}:\n        x = x + 1\n" for number in range(1, 900))
    program = f"import torch\ndef f(kind, x):\n    if kind == 0:\n        x = -x\n{chain}    return x\n"
    mixed = f"{program}f(a, torch.ones(3, device='cuda')) + torch.ones(3)\n"
    assert linted(program) == ()
    assert [finding.code for finding in linted(mixed)] == ["SD101"]


def test_calls_that_double_at_every_level_end():
    levels = "\n".join(f"def f{i}(x):\n    f{i + 1}(x); f{i + 1}(x); f{i + 1}(x)" for i in range(40))
    assert linted(f"import torch\n{levels}\ndef f40(x): pass\nf0(torch.ones(1))\n") == ()


@pytest.mark.parametrize(
    ("start", "again"),
    [
        ("x = [torch.ones(1)]", "x = x + x"),
        ("x = [torch.ones(1)]", "x += x"),
        ("x = [torch.ones(1)]", "x = [*x, *x]"),
        ("x = [torch.ones(1)]", "x = [x, x]"),
        ("x = {'a': torch.ones(1)}", "x = {'a': x, 'b': x}"),
        ("x = nn.Linear(1, 1)", "x = nn.Sequential(x, x)"),
        ("x = A(torch.ones(1))", "x = A((x, x))"),
        ("x = 'cuda'", "x = x + x"),
        ("x = 3", "x = x * x"),
    ],
)
def test_what_grows_with_every_line_ends(start, again):
    """Each line doubles what a program that runs would hold, or go through."""
    uses = [
        "y = copy.deepcopy(x)",
        "y = x if c else y",
        "torch.save(x, 'f')",
        "somebody.takes(x)",
        "nn.Sequential(x).cuda()(torch.ones(1))",
        "for batch in torch.utils.data.DataLoader(x): batch",
    ]
    head = "import copy, torch\nfrom torch import nn\nclass A:\n    def __init__(self, x): self.x = x\n"
    linted("\n".join([head + start, *[again] * 50, *uses]))


def test_what_holds_itself_ends():
    program = "import copy, torch\nx = [torch.ones(1)]\nx.append(x)\ncopy.deepcopy(x)\nf(x)\ntorch.cat(x)\n"
    assert linted(program) == ()
    assert linted("import torch\nclass A: pass\nA.__call__ = A()\nA()(torch.ones(1))\n") == ()


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(CASES), st.integers(0, 2**32))
def test_programs_with_lines_lost_and_doubled_end(case, seed):
    draw = random.Random(seed)
    lines = case.read_text().splitlines()
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(lines))
        lines[at : at + 1] = draw.choice([[], [lines[at]] * 2, [draw.choice(lines)]])
    linted("\n".join(lines))


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(CASES), st.integers(0, 2**32))
def test_programs_with_expressions_exchanged_end(case, seed):
    """Valid syntax, and nonsense."""
    draw = random.Random(seed)
    tree = ast.parse(case.read_text())
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Call | ast.Name | ast.Attribute)]
    for target in draw.sample(names, min(4, len(names))):
        other = ast.parse(draw.choice(NODES), mode="eval").body
        for parent in ast.walk(tree):
            for field, value in ast.iter_fields(parent):
                if value is target and isinstance(getattr(value, "ctx", ast.Load()), ast.Load):
                    setattr(parent, field, other)
    linted(ast.unparse(ast.fix_missing_locations(tree)))


@pytest.mark.slow
def test_a_hundred_thousand_lines_end():
    assert linted("import torch\n" + "x = torch.zeros(3)\ny = x + 1\n" * 50_000) == ()


def test_every_casebook_program_is_linted_without_an_error():
    report = lint([CASES[0].parents[1]])
    assert report.errors == ()
    wrong = [f.location.file for f in report.findings if not f.location.file.endswith("buggy.py")]
    assert wrong == []
    assert len({finding.location.file for finding in report.findings}) > 0.6 * len(CASES)
