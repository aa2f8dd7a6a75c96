"""SD106: `torch.zeros(…)` and the like without `device=` meet tensors on another device."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import mending, naming, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.devices.places import Certainty
from samedevice.linting.evidence import is_tensor, made_here, origin_of, where_made
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    origin = origin_of(fact)
    if (
        origin is None
        or not is_tensor(fact)
        or fact.certainty < Certainty.TENSOR
        or origin.how not in ("made", "numpy")
    ):
        return False
    if fact.role == "module" and not fact.where.in_module:
        return False
    return bool(origin.function) and bool(fact.where.function)


def _message(fact: Conflict, source: Source) -> str:
    origin = origin_of(fact)
    assert origin is not None
    made = wording.text_of(origin.node, source)
    return say(
        "`{made}` makes its tensor on {here}; {user} uses it with a tensor on {there}",
        made=made,
        user=wording.line(wording.line_of(fact.node)) if made_here(fact) else f"`{wording.text_of(fact.node, source)}`",
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    origin = origin_of(fact)
    if origin is None or not made_here(fact) or not isinstance(origin.node, ast.Call):
        return None
    device = naming.device_expression(fact, source, at=origin.node)
    if device is None or device.startswith('"'):
        # The device is known only later than the tensor is made.
        later = naming.device_expression(fact, source)
        if later is not None and not later.startswith('"'):
            return mending.moved(fact.culprit.node, later, source)
    return (
        mending.moved(origin.node, device, source)
        if origin.how == "numpy"
        else mending.add_device([origin.node], device, source)
    )


RULE = Rule("SD106", "factory-default-device", Conflict, _claims, _message, at=where_made, fix=_fix)
