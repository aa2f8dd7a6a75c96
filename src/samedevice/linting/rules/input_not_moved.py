"""SD101: a tensor is given to a model or operation on another device."""

from __future__ import annotations

from samedevice.linting import mending, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.evidence import is_certain, is_tensor
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Conflict) -> bool:
    return is_tensor(fact) and is_certain(fact)


def _message(fact: Conflict, source: Source) -> str:
    name = wording.text_of(fact.culprit.node, source)
    return f"`{name}` is on {wording.here(fact)} and {fact.operation} needs it on {wording.there(fact)}"


RULE = Rule("SD101", "input-not-moved", Conflict, _claims, _message, fix=mending.move_at_use)
