"""Mending a leaf that a move replaced: the tensor is made on the device at once."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, mending
from samedevice.linting.devices.facts import LostLeaf
from samedevice.linting.source import Source

__all__ = ["made_in_place", "move_of"]


def move_of(fact: LostLeaf) -> ast.AST:
    """The call that moved the leaf."""
    return fact.tensor.origin.node if fact.tensor.origin is not None else fact.node


def made_in_place(fact: LostLeaf, source: Source) -> Fix | None:
    """`nn.Parameter(torch.zeros(n)).to(d)` and `torch.zeros(n, requires_grad=True).to(d)`, with `device=d` instead."""
    move = move_of(fact)
    if (
        not isinstance(move, ast.Call)
        or not isinstance(move.func, ast.Attribute)
        or len(move.args) > 1
        or move.keywords
    ):
        return None
    if move.func.attr == "to" and not move.args:
        return None
    device = source.segment(move.args[0]) if move.args else f'"{move.func.attr}"'
    made = move.func.value
    factory = made.args[0] if isinstance(made, ast.Call) and made.args and isinstance(made.args[0], ast.Call) else made
    if not isinstance(made, ast.Call) or not isinstance(factory, ast.Call):
        return None
    with_device = _with_device(source, factory, device)
    text = source.segment(made).replace(source.segment(factory), with_device, 1)
    # Another device draws other numbers.
    return Fix(text, (edits.replace(source, move, text),), safe=not mending.is_random(factory))


def _with_device(source: Source, call: ast.Call, device: str) -> str:
    """The text of a factory call with `device=` after what it gives by position."""
    positional = [source.segment(part) for part in call.args]
    named = [source.segment(part) for part in call.keywords]
    return f"{source.segment(call.func)}({', '.join([*positional, f'device={device}', *named])})"
