"""SD202: an optimizer steps parameters that the model no longer has."""

from __future__ import annotations

import ast

from samedevice.linting.devices.facts import Fact, StaleParameters
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    return isinstance(fact, StaleParameters)


def _at(fact: Fact) -> ast.AST:
    assert isinstance(fact, StaleParameters)
    built_here = fact.optimizer.function == fact.where.function
    return fact.optimizer.node if built_here else fact.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, StaleParameters)
    line = getattr(fact.node, "lineno", 0)
    return (
        f"`{fact.name}` is replaced after this optimizer is built: its step in line {line} changes parameters that the model "
        "no longer has; build the optimizer afterwards"
    )


RULE = Rule("SD202", "optimizer-stale-params", _claims, _at, _message)
