"""SD114: a layer made inside `forward` is on the CPU, and new at every call."""

from __future__ import annotations

from samedevice.linting import wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.devices.values import Module
from samedevice.linting.evidence import is_certain, origin_node, origin_of
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    origin = origin_of(fact)
    if origin is None or not isinstance(fact.culprit.value, Module) or not is_certain(fact):
        return False
    return fact.where.in_module and bool(origin.cls) and not origin.function.endswith("__init__")


def _message(fact: Conflict, source: Source) -> str:
    origin = origin_of(fact)
    assert origin is not None
    return say(
        "`{code}` is made in {function}, after the model was moved: it is on {here}, its input on {there}, and nothing "
        "trains it",
        code=wording.text_of(origin.node, source),
        function=origin.function,
        here=wording.here(fact),
        there=wording.there(fact),
    )


RULE = Rule("SD114", "module-created-in-forward", Conflict, _claims, _message, at=origin_node)
