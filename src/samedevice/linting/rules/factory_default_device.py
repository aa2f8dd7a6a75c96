"""SD106: `torch.zeros(…)` and the like without `device=` meet tensors on another device."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact
from samedevice.linting.devices.values import Tensor
from samedevice.linting.evidence import conflict_over, is_certain, made_here, origin_of, where_made
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact, Tensor)
    origin = origin_of(conflict) if conflict is not None else None
    if conflict is None or origin is None or not is_certain(conflict) or origin.how not in ("made", "numpy"):
        return False
    if conflict.role == "module" and not conflict.where.in_module:
        return False
    return bool(origin.function) and bool(conflict.where.function)


def _at(fact: Fact) -> ast.AST:
    assert isinstance(fact, Conflict)
    return where_made(fact)


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    origin = origin_of(fact)
    assert origin is not None
    made = wording.text_of(origin.node, source)
    where = f"line {getattr(fact.node, 'lineno', 0)}" if made_here(fact) else f"`{wording.text_of(fact.node, source)}`"
    return (
        f"`{made}` makes its tensor on {wording.place_name(fact.culprit.place)}; {where} uses it with a tensor on "
        f"{wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict)
    origin = origin_of(fact)
    if origin is None or not made_here(fact) or not isinstance(origin.node, ast.Call):
        return None
    device = wording.device_expression(fact, source, at=origin.node)
    if device is None or device.startswith('"'):
        return _fix_at_use(fact, source) or _fix_there(origin.node, device, source)
    if origin.how == "numpy":
        return Fix(f".to({device})", (edits.append(source, origin.node, f".to({device})"),))
    return _fix_there(origin.node, device, source)


def _fix_there(call: ast.Call, device: str | None, source: Source) -> Fix | None:
    if device is None:
        return None
    return Fix(f"device={device}", (edits.add_keyword(source, call, f"device={device}"),))


def _fix_at_use(fact: Conflict, source: Source) -> Fix | None:
    """Where the device is known only later than the tensor is made."""
    device = wording.device_expression(fact, source)
    node = fact.culprit.node
    if device is None or device.startswith('"') or not isinstance(node, ast.expr):
        return None
    return Fix(f"{wording.text_of(node, source)}.to({device})", (edits.append(source, node, f".to({device})"),))


RULE = Rule("SD106", "factory-default-device", _claims, _at, _message, _fix)
