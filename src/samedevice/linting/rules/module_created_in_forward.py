"""SD114: a layer made inside `forward` is on the CPU, and new at every call."""

from __future__ import annotations

import ast

from samedevice.linting import wording
from samedevice.linting.devices.facts import Conflict, Fact
from samedevice.linting.devices.values import Module
from samedevice.linting.evidence import conflict_over, is_certain, origin_of
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact, Module)
    origin = origin_of(conflict) if conflict is not None else None
    return (
        conflict is not None
        and origin is not None
        and is_certain(conflict)
        and conflict.where.in_module
        and bool(origin.cls)
        and not origin.function.endswith("__init__")
    )


def _at(fact: Fact) -> ast.AST:
    assert isinstance(fact, Conflict)
    origin = origin_of(fact)
    assert origin is not None
    return origin.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    origin = origin_of(fact)
    assert origin is not None
    return (
        f"`{wording.text_of(origin.node, source)}` is made in {origin.function}, after the model was moved: it is on "
        f"{wording.place_name(fact.culprit.place)}, its input on {wording.place_name(fact.other.place)}, and nothing trains it"
    )


RULE = Rule("SD114", "module-created-in-forward", _claims, _at, _message)
