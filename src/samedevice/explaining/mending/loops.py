"""Mends of a loop that moves one by one and keeps nothing: what it runs over gets the moved ones."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.mending.edits import as_fix, replace_node
from samedevice.explaining.routes import resolve
from samedevice.explaining.sources import Source
from samedevice.explaining.syntax import dropped_in_loop
from samedevice.findings import Fix

__all__ = ["kept_in_loop"]


def kept_in_loop(evidence: Evidence, source: Source, loop: ast.For | ast.AsyncFor) -> Fix | None:
    """`xs = [x.to(device) for x in xs]` in place of `for x in xs: x.to(device)`; for `xs.items()`, an entry each round.

    Args:
        evidence: what was read.
        source: the file of the loop.
        loop: one whose body drops what it moves.

    Returns:
        None where the loop does more, or nothing would read what it was to keep.
    """
    call, over, target = dropped_in_loop(loop), loop.iter, loop.target
    if call is None or loop.orelse:
        return None
    move = source.text_of(call)
    if isinstance(over, ast.Tuple | ast.List) and isinstance(target, ast.Name) and len(over.elts) > 1:
        if not all(isinstance(part, ast.Name) for part in over.elts):
            return None
        names = ", ".join(source.text_of(part) for part in over.elts)
        return as_fix(replace_node(source, loop, f"{names} = ({move} for {target.id} in ({names}))"))
    if isinstance(target, ast.Name) and isinstance(over, ast.Name | ast.Attribute):
        text = source.text_of(over)
        kind = _kind_read(text, over, evidence, source)
        if kind is not list and kind is not tuple:
            return None
        moved = f"{move} for {target.id} in {text}"
        new = f"[{moved}]" if kind is list else f"tuple({moved})"
        return as_fix(replace_node(source, loop, f"{text} = {new}"))
    return _entry_each_round(source, loop, move)


def _kind_read(text: str, over: ast.expr, evidence: Evidence, source: Source) -> type | None:
    """The type of what the loop runs over, where the wrong tensor was reached by the very same words."""
    suspect = evidence.suspect
    named = [(suspect.frame, suspect.name), *suspect.aliases] if suspect is not None else []
    for frame, name in named:
        if frame.source is source and _begins(text, name) and _is_around(frame, over):
            found = resolve(over, frame)
            return type(found.value) if found is not None else None
    return None


def _begins(text: str, name: str) -> bool:
    return name.startswith((f"{text}[", f"{text}."))


def _is_around(frame: UserFrame, node: ast.expr) -> bool:
    return frame.definition is frame.source.function_at(node.lineno)


def _entry_each_round(source: Source, loop: ast.For | ast.AsyncFor, move: str) -> Fix | None:
    """`xs[key] = x.to(device)` of `for key, x in xs.items()`, `xs[i] = …` of `for i, x in enumerate(xs)`."""
    target, over = loop.target, loop.iter
    if not isinstance(target, ast.Tuple) or not isinstance(target.elts[0], ast.Name) or not isinstance(over, ast.Call):
        return None
    held: ast.expr | None = None
    if isinstance(over.func, ast.Attribute) and over.func.attr == "items":
        held = over.func.value
    elif isinstance(over.func, ast.Name) and over.func.id == "enumerate" and len(over.args) == 1 and not over.keywords:
        held = over.args[0]
    if not isinstance(held, ast.Name | ast.Attribute):
        return None
    return as_fix(replace_node(source, loop.body[0], f"{source.text_of(held)}[{target.elts[0].id}] = {move}"))
