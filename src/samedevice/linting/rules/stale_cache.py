"""SD118: a tensor kept from an earlier call was made for the device of that call."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.evidence import held_of, is_certain, is_tensor, kept, origin_of, where_held
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    held = held_of(fact)
    if held is None or not is_tensor(fact) or not is_certain(fact):
        return False
    if held.kind == "cache":
        return True
    origin = origin_of(fact)
    placed = origin is not None and origin.how in ("made on", "moved") and not origin.literal
    return held.kind == "attribute" and placed and not held.function.endswith("__init__")


def _message(fact: Conflict, source: Source) -> str:
    held = kept(fact)
    name = f"self.{held.name}" if held.owner else held.name
    return say(
        "`{name}` keeps a tensor that was made on {here}; a later call needs it on {there} ({line})",
        name=name,
        line=wording.line(wording.line_of(fact.node)),
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    held = kept(fact)
    if held.kind != "attribute":
        return None
    name = f"self.{held.name}"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.If) and any(held.node in _targets(statement) for statement in node.body):
            device = _device_given(node)
            if source.segment(node.test) == f"{name} is None" and device is not None:
                text = f"{name} is None or {name}.device != {source.segment(device)}"
                return Fix(f"if {text}:", (edits.replace(source, node.test, text),))
    return None


def _targets(statement: ast.stmt) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else []


def _device_given(node: ast.If) -> ast.expr | None:
    """The device on which the body makes the tensor."""
    for part in ast.walk(node):
        if isinstance(part, ast.keyword) and part.arg == "device":
            return part.value
    return None


RULE = Rule("SD118", "stale-cache", Conflict, _claims, _message, at=where_held, fix=_fix)
