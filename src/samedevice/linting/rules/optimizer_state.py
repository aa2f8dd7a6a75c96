"""SD201: what an optimizer keeps about its parameters stayed behind when they were moved."""

from __future__ import annotations

import ast

from samedevice.linting import wording
from samedevice.linting.devices.facts import Conflict, Fact
from samedevice.linting.devices.values import Optimizer, Tensor
from samedevice.linting.evidence import conflict_over, held_of, is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact)
    if conflict is None or not is_certain(conflict):
        return False
    if conflict.role == "optimizer":
        return True
    held = held_of(conflict)
    other = conflict.other.value
    # A tensor cloned from a parameter before the parameter was moved.
    return (
        isinstance(conflict.culprit.value, Tensor)
        and conflict.culprit.value.kind == "plain"
        and conflict.culprit.value.copied
        and isinstance(other, Tensor)
        and (held is None or not held.in_module)
    )


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    if isinstance(fact.culprit.value, Optimizer):
        built = getattr(fact.culprit.value.node, "lineno", 0)
        return (
            f"{fact.culprit.value.name} made its state on {wording.place_name(fact.culprit.place)} in line {built}; the "
            f"parameters are on {wording.place_name(fact.other.place)} now"
        )
    name = wording.text_of(fact.culprit.node, source)
    return (
        f"`{name}` was copied from a parameter on {wording.place_name(fact.culprit.place)}; the parameter is on "
        f"{wording.place_name(fact.other.place)} now"
    )


RULE = Rule("SD201", "optimizer-state", _claims, _at, _message)
