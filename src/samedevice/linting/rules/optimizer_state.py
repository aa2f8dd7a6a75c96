"""SD201: what an optimizer keeps about its parameters stayed behind when they were moved."""

from __future__ import annotations

from samedevice.linting import wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.devices.values import Optimizer, Tensor
from samedevice.linting.evidence import held_of, is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


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
        line = wording.line_of(optimizer.state_node or optimizer.node)
        how = "has had its state" if optimizer.state_node is not None else "made its state"
        return (
            f"{optimizer.name} {how} on {wording.here(fact)} since line {line}; the parameters are on "
            f"{wording.there(fact)} now"
        )
    name = wording.text_of(fact.culprit.node, source)
    return (
        f"`{name}` was copied from a parameter on {wording.here(fact)}; the parameter is on {wording.there(fact)} now"
    )


RULE = Rule("SD201", "optimizer-state", Conflict, _claims, _message)
