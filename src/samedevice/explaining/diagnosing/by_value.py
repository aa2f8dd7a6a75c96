"""Causes of a plain variable: made on the default device, indices elsewhere, parts of a model apart, input not moved."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict, spanning_model
from samedevice.explaining.making import factory_call, from_data, is_literal
from samedevice.explaining.live import is_module

__all__ = ["judge"]

_INDEXING = ("index", "index_put", "index_put_impl")


def judge(evidence: Evidence) -> Verdict | None:
    """The cause of a tensor that only a variable, an entry or an expression holds."""
    if evidence.suspect is None or evidence.side is None:
        return None
    return _split(evidence) or _default_device(evidence) or _index(evidence) or _not_moved(evidence)


def _split(evidence: Evidence) -> Verdict | None:
    """Between two accelerators, with the model's parameters on both."""
    if "cpu" in (evidence.device, evidence.expected):
        return None
    model = spanning_model(evidence)
    if model is None:
        return None
    return Verdict("split-model", f"the parts of {model.text} are on {evidence.expected} and {evidence.device}")


def _default_device(evidence: Evidence) -> Verdict | None:
    made = evidence.made
    if made is None or made.event in ("moved", "loaded") or evidence.device != "cpu":
        return None
    statement = _making_part(evidence)
    call = factory_call(statement, made.source)
    if call is None:
        data = from_data(statement, made.source)
        call = data if data is not None and is_literal(data) else None
    if call is None or (made.function in ("", "<module>") and not _in_loop(evidence)):
        return None
    name = made.source.text_of(call.func)
    return Verdict("factory-default-device", f"{name} without `device=` makes it on the default device")


def _making_part(evidence: Evidence) -> ast.AST | None:
    """The expression that made it, where the failing line holds several; else the whole statement."""
    suspect, made = evidence.suspect, evidence.made
    if suspect is not None and isinstance(suspect.node, ast.expr) and suspect.route is None:
        return suspect.node
    return made.statement if made is not None else None


def _in_loop(evidence: Evidence) -> bool:
    made = evidence.made
    if made is None:
        return False
    return any(
        isinstance(node, ast.For | ast.While) and node.lineno < made.line <= (node.end_lineno or 0)
        for node in ast.walk(made.source.tree)
    )


def _index(evidence: Evidence) -> Verdict | None:
    if evidence.operation not in _INDEXING and evidence.kind != "index-device":
        return None
    return Verdict("index-device", "the index is on another device than what it reads, and only a CPU index may be")


def _not_moved(evidence: Evidence) -> Verdict | None:
    """Data that met the model without having been moved to it."""
    suspect, made = evidence.suspect, evidence.made
    if suspect is None or is_module(suspect.value):
        return None
    if made is not None and made.event == "moved" and evidence.device == "cpu":
        return Verdict(
            "input-not-moved", f"line {made.line} brought it to the CPU, and nothing back to {evidence.expected}"
        )
    if evidence.device == "cpu":
        return Verdict("input-not-moved", f"it was made on the CPU and never moved to {evidence.expected}")
    return None
