"""SD203: a GradScaler steps what got no gradients; a table of a scheduler of one's own is not where the steps are."""

from __future__ import annotations

from samedevice.findings import Fix
from samedevice.linting import mending, wording
from samedevice.linting.devices.facts import Conflict, ScalerWithoutGradients
from samedevice.linting.evidence import held_of, is_certain, is_tensor, kept
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say

_Fact = Conflict | ScalerWithoutGradients


def _claims(fact: _Fact) -> bool:
    if isinstance(fact, ScalerWithoutGradients):
        return True
    held = held_of(fact)
    if held is None or held.in_module or not is_tensor(fact) or not is_certain(fact):
        return False
    return held.owner.lower().endswith(("scheduler", "scaler", "schedule", "diffusion"))


def _message(fact: _Fact, source: Source) -> str:
    if isinstance(fact, ScalerWithoutGradients):
        return say(
            "no backward pass reached the parameters of the optimizer of {line}: the scaler refuses to step it",
            line=wording.line(wording.line_of(fact.optimizer.node)),
        )
    assert isinstance(fact, Conflict)
    held = kept(fact)
    return say(
        "`self.{name}` of {owner} is on {here} and meets a tensor on {there}",
        name=held.name,
        owner=held.owner,
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _fix(fact: _Fact, source: Source) -> Fix | None:
    if not isinstance(fact, Conflict):
        return None
    return mending.move_at_use(fact, source)


RULE: Rule[_Fact] = Rule(
    "SD203", "scaler-or-scheduler", (Conflict, ScalerWithoutGradients), _claims, _message, fix=_fix
)
