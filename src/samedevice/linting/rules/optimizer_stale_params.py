"""SD202: an optimizer steps parameters that the model no longer has."""

from __future__ import annotations

import ast

from samedevice.linting import wording
from samedevice.linting.devices.facts import StaleParameters
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: StaleParameters) -> bool:
    return True


def _at(fact: StaleParameters) -> ast.AST:
    built_here = fact.optimizer.function == fact.where.function
    return fact.optimizer.node if built_here else fact.node


def _message(fact: StaleParameters, source: Source) -> str:
    return say(
        "`{name}` is replaced after this optimizer is built: its step in {line} changes parameters that the model no "
        "longer has; build the optimizer afterwards",
        name=fact.name,
        line=wording.line(wording.line_of(fact.node)),
    )


RULE = Rule("SD202", "optimizer-stale-params", StaleParameters, _claims, _message, at=_at)
