"""SD117: a tensor at module level stays where it was made, and a function uses it with others."""

from __future__ import annotations

from samedevice.linting import mending, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.evidence import held_of, is_certain, kept
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    held = held_of(fact)
    return held is not None and held.kind == "global" and is_certain(fact)


def _message(fact: Conflict, source: Source) -> str:
    held = kept(fact)
    return say(
        "`{name}` is made at module level on {here} and used here with a tensor on {there}",
        name=held.name,
        here=wording.here(fact),
        there=wording.there(fact),
    )


RULE = Rule("SD117", "global-tensor", Conflict, _claims, _message, fix=mending.move_at_use)
