"""SD101: a tensor is given to a model or operation on another device."""

from __future__ import annotations

from samedevice.linting import mending, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.evidence import is_certain, is_tensor
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    return is_tensor(fact) and is_certain(fact)


def _message(fact: Conflict, source: Source) -> str:
    name = wording.text_of(fact.culprit.node, source)
    return say(
        "`{name}` is on {here} and {operation} needs it on {there}",
        name=name,
        operation=fact.operation,
        here=wording.here(fact),
        there=wording.there(fact),
    )


RULE = Rule("SD101", "input-not-moved", Conflict, _claims, _message, fix=mending.move_at_use)
