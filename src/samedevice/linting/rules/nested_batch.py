"""SD108: a part of a batch was not moved with the rest of it."""

from __future__ import annotations

import ast

from samedevice.linting import wording
from samedevice.linting.devices.facts import Conflict, Fact
from samedevice.linting.devices.values import Tensor
from samedevice.linting.evidence import conflict_over, held_of, is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact, Tensor)
    if conflict is None or not is_certain(conflict) or conflict.role in ("numpy", "lengths"):
        return False
    held = held_of(conflict)
    if held is not None:
        return held.kind == "attribute" and not held.in_module and held.movable
    return _is_item(conflict.culprit.node)


def _is_item(node: ast.AST) -> bool:
    """`batch["extra"]["mask"]`, `batch.extra.mask`, `sample["mask"]`: a part taken out by name."""
    return (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    )


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    name = wording.text_of(fact.culprit.node, source)
    held = held_of(fact)
    whole = f"; {held.owner}.to() does not move it" if held is not None else ""
    return (
        f"`{name}` is on {wording.place_name(fact.culprit.place)}, the rest of the batch on "
        f"{wording.place_name(fact.other.place)}{whole}"
    )


RULE = Rule("SD108", "nested-batch", _claims, _at, _message)
