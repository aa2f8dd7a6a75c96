"""SD203: a GradScaler steps what got no gradients; a table of a scheduler of one's own is not where the steps are."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact, ScalerWithoutGradients
from samedevice.linting.devices.values import Tensor
from samedevice.linting.evidence import conflict_over, held_of, is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    if isinstance(fact, ScalerWithoutGradients):
        return True
    conflict = conflict_over(fact, Tensor)
    held = held_of(conflict) if conflict is not None else None
    return (
        conflict is not None
        and held is not None
        and is_certain(conflict)
        and not held.in_module
        and held.owner.lower().endswith(("scheduler", "scaler", "schedule", "diffusion"))
    )


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _message(fact: Fact, source: Source) -> str:
    if isinstance(fact, ScalerWithoutGradients):
        built = getattr(fact.optimizer.node, "lineno", 0)
        return f"no backward pass reached the parameters of the optimizer of line {built}, so the scaler refuses to step it"
    assert isinstance(fact, Conflict)
    held = held_of(fact)
    assert held is not None
    return (
        f"`self.{held.name}` of {held.owner} is on {wording.place_name(fact.culprit.place)} and meets a tensor on "
        f"{wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    if not isinstance(fact, Conflict):
        return None
    device = wording.device_expression(fact, source)
    node = fact.culprit.node
    if device is None or not isinstance(node, ast.expr):
        return None
    return Fix(f"{wording.text_of(node, source)}.to({device})", (edits.append(source, node, f".to({device})"),))


RULE = Rule("SD203", "scaler-or-scheduler", _claims, _at, _message, _fix)
