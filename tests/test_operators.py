"""What Python's operators call: by the table, as a simulated machine refuses them, and as the linter names them."""

import ast
import re

import pytest
import torch

import samedevice
from samedevice.faults import fault_of
from samedevice.linting.lint import lint_source
from samedevice.messages.operators import OPERATORS, in_place

SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
ASSIGNED = [kind for kind in SIGNS if issubclass(kind, ast.operator) and kind is not ast.Div]
MAKING = "x = torch.ones(2, dtype=torch.long, device='cuda'); y = torch.ones(2, dtype=torch.long)"


def refused(statement):
    """The operator that a simulated machine refuses."""
    with samedevice.simulate("cuda"), pytest.raises(RuntimeError, match="same device") as caught:
        exec(f"{MAKING}; {statement}", {"torch": torch})
    return fault_of(caught.value).operation


def named(statement):
    """The operator that the linter says."""
    (finding,) = lint_source(f"import torch\n{MAKING}\n{statement}\n")
    return re.search(r"and (\S+) needs it", finding.message)[1]


def test_the_table_has_every_operator_of_two_values():
    assert set(OPERATORS) == {*SIGNS, ast.MatMult}


@pytest.mark.parametrize("kind", SIGNS, ids=SIGNS.values())
def test_an_operator_is_named_alike(kind):
    assert refused(f"x {SIGNS[kind]} y") == f"aten::{OPERATORS[kind]}"
    assert named(f"x {SIGNS[kind]} y") == OPERATORS[kind]


@pytest.mark.parametrize("kind", ASSIGNED, ids=[f"{SIGNS[kind]}=" for kind in ASSIGNED])
def test_an_assignment_is_named_alike(kind):
    assert refused(f"x {SIGNS[kind]}= y") == f"aten::{in_place(kind())}"
    assert named(f"x {SIGNS[kind]}= y") == in_place(kind())


def test_a_product_is_assigned_anew():
    assert not hasattr(torch.Tensor, "__imatmul__")
    assert in_place(ast.MatMult()) == "matmul"
    (finding,) = lint_source("import torch\nx = y = torch.ones(2, 2, device='cuda')\nx @= torch.ones(2, 2)\nx + y\n")
    assert "matmul needs it" in finding.message
