"""SD201: what an optimizer keeps about its parameters stayed behind when they were moved."""

from __future__ import annotations

from samedevice.linting import wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.devices.values import Optimizer, Tensor
from samedevice.linting.evidence import held_of, is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    if fact.role == "optimizer":
        return is_certain(fact)
    # A tensor cloned from a parameter before the parameter was moved.
    culprit, held = fact.culprit.value, held_of(fact)
    copied = isinstance(culprit, Tensor) and culprit.kind == "plain" and culprit.copied
    return copied and is_certain(fact) and (held is None or not held.in_module)


def _message(fact: Conflict, source: Source) -> str:
    if isinstance(fact.culprit.value, Optimizer):
        optimizer = fact.culprit.value
        return _of_optimizer(optimizer, fact)
    return say(
        "`{name}` was copied from a parameter on {here}; the parameter is on {there} now",
        name=wording.text_of(fact.culprit.node, source),
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _of_optimizer(optimizer: Optimizer, fact: Conflict) -> str:
    line = wording.line(wording.line_of(optimizer.state_node or optimizer.node))
    here, there = wording.here(fact), wording.there(fact)
    if fact.culprit.argument == "capturable":
        return say(
            "{line} asks {name} for `capturable`; its counts of steps are on {here}, the parameters on {there}",
            line=wording.line(wording.line_of(fact.culprit.node)),
            name=optimizer.name,
            here=here,
            there=there,
        )
    if optimizer.state_node is not None:
        return say(
            "{name} has had its state on {here} since {line}; the parameters are on {there} now",
            name=optimizer.name,
            line=line,
            here=here,
            there=there,
        )
    return say(
        "{name} made its state on {here} since {line}; the parameters are on {there} now",
        name=optimizer.name,
        line=line,
        here=here,
        there=there,
    )


RULE = Rule("SD201", "optimizer-state", Conflict, _claims, _message)
