"""SD118: a tensor kept from an earlier call was made for the device of that call."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact
from samedevice.linting.devices.values import Held, Tensor
from samedevice.linting.evidence import conflict_over, held_of, is_certain, origin_of
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact, Tensor)
    held = held_of(conflict) if conflict is not None else None
    if conflict is None or held is None or not is_certain(conflict):
        return False
    if held.kind == "cache":
        return True
    origin = origin_of(conflict)
    placed = origin is not None and origin.how in ("made on", "moved") and not origin.literal
    return held.kind == "attribute" and placed and not held.function.endswith("__init__")


def _held(fact: Fact) -> Held:
    assert isinstance(fact, Conflict)
    held = held_of(fact)
    assert held is not None
    return held


def _at(fact: Fact) -> ast.AST:
    return _held(fact).node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    held = _held(fact)
    name = f"self.{held.name}" if held.owner else held.name
    line = getattr(fact.node, "lineno", 0)
    return (
        f"`{name}` keeps a tensor that was made on {wording.place_name(fact.culprit.place)}; a later call needs it on "
        f"{wording.place_name(fact.other.place)} (line {line})"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    held = _held(fact)
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


RULE = Rule("SD118", "stale-cache", _claims, _at, _message, _fix)
