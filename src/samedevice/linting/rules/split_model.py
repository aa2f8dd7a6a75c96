"""SD115: parts of a model are on several devices, and a tensor goes from one to the other without being moved."""

from __future__ import annotations

from samedevice.findings import Fix
from samedevice.linting import mending, naming, wording
from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.places import CPU, Place, resolve
from samedevice.linting.devices.values import Module
from samedevice.linting.evidence import is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    apart = fact.role in ("module", "strict", "elementwise", "criterion") and is_certain(fact)
    return apart and _named(fact.culprit) and _named(fact.other)


def _named(operand: Operand) -> bool:
    place = resolve(operand.place) if operand.place is not None else None
    return isinstance(place, Place) and place != CPU


def _message(fact: Conflict, source: Source) -> str:
    tensor, part = _sides(fact)
    return say(
        "`{name}` is on {here} and `{other}` on {there}",
        name=wording.text_of(tensor.node, source),
        other=wording.text_of(part.node, source),
        here=wording.place_name(tensor.place),
        there=wording.place_name(part.place),
    )


def _sides(conflict: Conflict) -> tuple[Operand, Operand]:
    """The operand to move, and the one to move it to: a module stays."""
    if isinstance(conflict.culprit.value, Module):
        return conflict.other, conflict.culprit
    return conflict.culprit, conflict.other


def _fix(fact: Conflict, source: Source) -> Fix | None:
    tensor, part = _sides(fact)
    # The parts were placed by name, so the name of the device says most.
    device = naming.own_device_name(fact, part) or f'"{wording.place_name(part.place)}"'
    if "{" in device:
        device = naming.device_expression(fact, source, beside=part) or ""
    return mending.moved(tensor.node, device or None, source)


RULE = Rule("SD115", "split-model", Conflict, _claims, _message, fix=_fix)
