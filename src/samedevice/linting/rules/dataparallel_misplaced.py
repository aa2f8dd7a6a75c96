"""SD116: DataParallel wants its module on the first of its devices."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import mending, naming, wording
from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.places import CPU, CUDA, resolve
from samedevice.linting.devices.values import Module
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    return fact.role == "replicas"


def _sides(conflict: Conflict) -> tuple[Operand, Operand]:
    """The module, and the first device."""
    sides = (conflict.culprit, conflict.other)
    return sides if isinstance(conflict.culprit.value, Module) else sides[::-1]


def _message(fact: Conflict, source: Source) -> str:
    module, first = _sides(fact)
    return say(
        "DataParallel copies its module from {there}, the first of its devices; the module is on {here}",
        here=wording.place_name(module.place),
        there=wording.place_name(first.place),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    module, _ = _sides(fact)
    # Moved ahead of the wrapper it is in the right place with one device, too, where nothing wraps it.
    made = _made_here(fact, module) or module.node
    if module.place is None or resolve(module.place) != CPU or not isinstance(made, ast.Call):
        return None
    device = _named(fact, made, source) or '"cuda"'
    return mending.moved(made, device, source)


def _made_here(fact: Conflict, module: Operand) -> ast.Call | None:
    """The expression that makes the module, where that is in the same function and outside of the wrapper's call."""
    origin = module.value.origin if isinstance(module.value, Module) and not module.value.moved else None
    made = origin.node if origin is not None and origin.function == fact.where.function else None
    inline = any(part is made for part in ast.walk(module.node))
    return made if isinstance(made, ast.Call) and not inline else None


def _named(fact: Conflict, made: ast.Call, source: Source) -> str | None:
    """The program's name for "cuda", of which the first is meant."""
    whole = Operand(fact.culprit.value, CUDA, made)
    device = naming.device_expression(fact, source, at=made, beside=whole)
    return None if device is None or device.startswith('"') else device


RULE = Rule("SD116", "dataparallel-misplaced", Conflict, _claims, _message, fix=_fix)
