"""SD108: a part of a batch was not moved with the rest of it."""

from __future__ import annotations

import ast

from samedevice.linting import wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.evidence import held_of, is_certain, is_tensor
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    if not is_tensor(fact) or not is_certain(fact):
        return False
    held = held_of(fact)
    if held is not None:
        return held.kind == "attribute" and not held.in_module and held.movable
    return _is_item(fact.culprit.node) and not fact.culprit.unmoved


def _is_item(node: ast.AST) -> bool:
    """`batch["extra"]["mask"]`, `batch.extra.mask`, `sample["mask"]`: a part taken out by name."""
    return (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    )


def _message(fact: Conflict, source: Source) -> str:
    name = wording.text_of(fact.culprit.node, source)
    held, here, there = held_of(fact), wording.here(fact), wording.there(fact)
    if held is None:
        return say("`{name}` is on {here}, the rest of the batch on {there}", name=name, here=here, there=there)
    return say(
        "`{name}` is on {here}, the rest of the batch on {there}; {owner}.to() does not move it",
        name=name,
        here=here,
        there=there,
        owner=held.owner,
    )


RULE = Rule("SD108", "nested-batch", Conflict, _claims, _message)
