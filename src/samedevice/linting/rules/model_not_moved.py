"""SD102: a model that was never moved gets inputs that were."""

from __future__ import annotations

from samedevice.linting import mending, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.devices.values import Module
from samedevice.linting.evidence import is_certain, is_tensor
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    return not is_tensor(fact) and is_certain(fact) and fact.role != "replicas"


def _message(fact: Conflict, source: Source) -> str:
    assert isinstance(fact.culprit.value, Module)
    module = fact.culprit.value
    name = wording.text_of(fact.culprit.node, source)
    moved = getattr(module.moved_at, "lineno", None)
    here, there = wording.here(fact), wording.there(fact)
    if moved is None:
        return say("`{name}` is on {here} and is called with a tensor on {there}", name=name, here=here, there=there)
    return say(
        "`{name}` is since {line} on {here} and is called with a tensor on {there}",
        name=name,
        line=wording.line(moved),
        here=here,
        there=there,
    )


RULE = Rule("SD102", "model-not-moved", Conflict, _claims, _message, fix=mending.move_module_where_made)
