"""SD112: numpy reads memory of the CPU only."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.values import Tensor
from samedevice.linting.evidence import is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Conflict) -> bool:
    return fact.role == "numpy" and is_certain(fact)


def _tensor(conflict: Conflict) -> Operand:
    return conflict.culprit if isinstance(conflict.culprit.value, Tensor) else conflict.other


def _message(fact: Conflict, source: Source) -> str:
    tensor = _tensor(fact)
    name = wording.text_of(tensor.node, source)
    return f"`{name}` is on {wording.place_name(tensor.place)}; numpy needs it on the CPU"


def _fix(fact: Conflict, source: Source) -> Fix | None:
    node = _tensor(fact).node
    if not isinstance(node, ast.expr):
        return None
    return Fix(f"{wording.text_of(node, source)}.cpu()", (edits.append(source, node, ".cpu()"),))


RULE = Rule("SD112", "numpy-on-cuda", Conflict, _claims, _message, fix=_fix)
