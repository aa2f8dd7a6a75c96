"""SD103: a tensor is kept as a plain attribute, which no `.to()` moves."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, leaves, wording
from samedevice.linting.devices.facts import Conflict, Fact, LostLeaf
from samedevice.linting.devices.values import Held, Tensor
from samedevice.linting.evidence import conflict_over, held_of, is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    if isinstance(fact, LostLeaf):
        return fact.use == "parameter"
    conflict = conflict_over(fact, Tensor)
    held = held_of(conflict) if conflict is not None else None
    return (
        conflict is not None
        and held is not None
        and held.kind == "attribute"
        and _is_plain(conflict)
        and conflict.role not in ("numpy", "generator", "lengths")
        and (held.in_module or is_certain(conflict))
    )


def _is_plain(conflict: Conflict) -> bool:
    return isinstance(conflict.culprit.value, Tensor) and conflict.culprit.value.kind == "plain"


def _held(fact: Fact) -> Held:
    assert isinstance(fact, Conflict)
    held = held_of(fact)
    assert held is not None
    return held


def _at(fact: Fact) -> ast.AST:
    return fact.node if isinstance(fact, LostLeaf) else _held(fact).node


def _message(fact: Fact, source: Source) -> str:
    if isinstance(fact, LostLeaf):
        name = wording.text_of(fact.node, source)
        return (
            f"`{name}` is the moved copy of a parameter and no parameter itself: the module neither moves nor trains it"
        )
    assert isinstance(fact, Conflict)
    held = _held(fact)
    line = getattr(fact.node, "lineno", 0)
    what = (
        f"is no buffer, so {held.owner}.to() leaves it"
        if held.in_module
        else f"is kept by {held.owner}, which is no module,"
    )
    return (
        f"`self.{held.name}` {what} on {wording.place_name(fact.culprit.place)}; line {line} uses it with a tensor on "
        f"{wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    if isinstance(fact, LostLeaf):
        return leaves.made_in_place(fact, source)
    assert isinstance(fact, Conflict)
    held = _held(fact)
    statement = _assignment(source, held)
    if not held.in_module or statement is None:
        return _fix_at_use(fact, source)
    value = source.segment(statement.value)
    text = f'self.register_buffer("{held.name}", {value})'
    return Fix(text, (edits.replace(source, statement, text),))


def _fix_at_use(fact: Conflict, source: Source) -> Fix | None:
    device = wording.device_expression(fact, source)
    node = fact.culprit.node
    if device is None or not isinstance(node, ast.expr):
        return None
    return Fix(f"{wording.text_of(node, source)}.to({device})", (edits.append(source, node, f".to({device})"),))


def _assignment(source: Source, held: Held) -> ast.Assign | None:
    """The statement `self.name = value`, where it is the only one that sets the attribute and stands in `__init__`."""
    if not held.function.endswith(".__init__"):
        return None
    stores = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr == held.name and isinstance(node.ctx, ast.Store)
    ]
    if stores != [held.node]:
        return None
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and node.targets == [held.node]:
            return node
    return None


RULE = Rule("SD103", "plain-attribute", _claims, _at, _message, _fix)
