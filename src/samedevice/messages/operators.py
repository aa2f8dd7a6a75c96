"""Which operator of PyTorch an operator of Python's calls: `a << b` of tensors is `aten::__lshift__`."""

from __future__ import annotations

import ast

__all__ = ["OPERATORS", "in_place"]

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "__lshift__",
    ast.RShift: "__rshift__",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
"""Source: torch/_tensor.py and tools/autograd/templates/python_variable_methods.cpp, 2.6 to 2.14."""


def in_place(operator: ast.operator) -> str:
    """What the operator of an assignment calls, `a += b`; tensors have no `@=`, so that is `a = a @ b`.

    Args:
        operator: of the assignment.
    """
    name = OPERATORS[type(operator)]
    if name == "matmul":
        return name
    return name.replace("__", "__i", 1) if name.startswith("__") else f"{name}_"
