"""SD109: a tensor is indexed by one on another device; only the CPU or the tensor's own device is accepted."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact
from samedevice.linting.devices.values import Tensor
from samedevice.linting.evidence import conflict_over, is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact, Tensor)
    return conflict is not None and conflict.role in ("index", "value") and is_certain(conflict)


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    return (
        f"`{wording.text_of(fact.node, source)}`: `{wording.text_of(fact.culprit.node, source)}` is on "
        f"{wording.place_name(fact.culprit.place)}, `{wording.text_of(fact.other.node, source)}` on "
        f"{wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict)
    if fact.role == "index" and isinstance(fact.other.node, ast.expr) and fact.other.argument == "indices":
        return Fix(
            f"{wording.text_of(fact.other.node, source)}.cpu()", (edits.append(source, fact.other.node, ".cpu()"),)
        )
    device = wording.device_expression(fact, source)
    node = fact.culprit.node
    if device is None or not isinstance(node, ast.expr):
        return None
    return Fix(f"{wording.text_of(node, source)}.to({device})", (edits.append(source, node, f".to({device})"),))


RULE = Rule("SD109", "index-device", _claims, _at, _message, _fix)
