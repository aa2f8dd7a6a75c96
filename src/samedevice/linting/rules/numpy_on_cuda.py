"""SD112: numpy reads memory of the CPU only."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact, Operand
from samedevice.linting.devices.values import Tensor
from samedevice.linting.evidence import conflict_over, is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact)
    return conflict is not None and conflict.role == "numpy" and is_certain(conflict)


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _tensor(conflict: Conflict) -> Operand:
    return conflict.culprit if isinstance(conflict.culprit.value, Tensor) else conflict.other


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    tensor = _tensor(fact)
    name = wording.text_of(tensor.node, source)
    return f"`{name}` is on {wording.place_name(tensor.place)}; numpy needs it on the CPU"


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict)
    node = _tensor(fact).node
    if not isinstance(node, ast.expr):
        return None
    return Fix(f"{wording.text_of(node, source)}.cpu()", (edits.append(source, node, ".cpu()"),))


RULE = Rule("SD112", "numpy-on-cuda", _claims, _at, _message, _fix)
