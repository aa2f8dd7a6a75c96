"""What a rule is, and which there are: each reads the facts about a file and speaks for one cause."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from samedevice.findings import Fix
from samedevice.linting.devices.facts import Fact
from samedevice.linting.source import Source

__all__ = ["ORDER", "Rule", "rules"]


F = TypeVar("F", bound=Fact)


def _surface(fact: Fact) -> ast.AST:
    return fact.node


def _no_fix(fact: Fact, source: Source) -> Fix | None:
    return None


@dataclass(frozen=True, slots=True)
class Rule(Generic[F]):
    """Speaks for one cause. The first rule of `ORDER` that claims a fact reports it; no fact is reported twice."""

    code: str
    slug: str
    kind: type[Fact] | tuple[type[Fact], ...]
    """The facts that it looks at."""
    claims: Callable[[F], bool]
    message: Callable[[F, Source], str]
    at: Callable[[F], ast.AST] = _surface
    """The node where the finding is reported: where the mend goes, else where the fault surfaces."""
    fix: Callable[[F, Source], Fix | None] = _no_fix


ORDER = (
    "numpy_on_cuda",
    "lengths_must_be_cpu",
    "generator_device",
    "dataparallel_misplaced",
    "optimizer_stale_params",
    "optimizer_state",
    "other",
    "result_discarded",
    "module_created_in_forward",
    "plain_container",
    "stale_cache",
    "hardcoded_device",
    "criterion_not_moved",
    "checkpoint_map_location",
    "scaler_or_scheduler",
    "metric_state",
    "nested_batch",
    "plain_attribute",
    "global_tensor",
    "hidden_state",
    "second_model_not_moved",
    "model_not_moved",
    "split_model",
    "factory_default_device",
    "index_device",
    "input_not_moved",
)
"""The rules' modules, the most particular cause first."""


@functools.cache
def rules() -> tuple[Rule[Any], ...]:
    """Every rule, in order."""
    return tuple(importlib.import_module(f"samedevice.linting.rules.{name}").RULE for name in ORDER)
