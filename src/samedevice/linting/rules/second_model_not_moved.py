"""SD119: a teacher, a copy or a target network stayed behind when the first model was moved."""

from __future__ import annotations

from samedevice.linting import mending, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.devices.values import Module
from samedevice.linting.evidence import is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    module = fact.culprit.value
    return is_certain(fact) and isinstance(module, Module) and module.copied and not module.moved


def _message(fact: Conflict, source: Source) -> str:
    name = wording.text_of(fact.culprit.node, source)
    return say(
        "`{name}` was copied on {here} and not moved since; it is called with a tensor on {there}",
        name=name,
        here=wording.here(fact),
        there=wording.there(fact),
    )


RULE = Rule("SD119", "second-model-not-moved", Conflict, _claims, _message, fix=mending.move_module_where_made)
