"""Causes of a plain variable: made on the default device, an index elsewhere, a model in parts, input not moved."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict, spanning_model
from samedevice.explaining.diagnosing.moved_in_source import moved_elsewhere
from samedevice.explaining.live import devices_of_parameters, is_module
from samedevice.explaining.made import Made
from samedevice.explaining.making import factory_call, from_data, is_literal
from samedevice.explaining.sources import Source
from samedevice.texts import say

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
    if model is not None:
        return Verdict(
            "split-model",
            say(
                "the parts of {name} are on {expected} and {device}",
                name=model.text,
                expected=evidence.expected,
                device=evidence.device,
            ),
        )
    apart = [_model_on(evidence, device) for device in (evidence.device, evidence.expected)]
    computed = evidence.made is not None and evidence.made.event == "computed"
    if not computed or apart[0] is None or apart[1] is None:
        return None
    return Verdict(
        "split-model",
        say(
            "{name} computes on {device} and {other} on {expected}; nothing moved it",
            name=apart[0],
            device=evidence.device,
            other=apart[1],
            expected=evidence.expected,
        ),
    )


def _model_on(evidence: Evidence, device: str) -> str | None:
    """What the user calls a model whose parameters are all on `device`."""
    for route in evidence.models():
        if devices_of_parameters(route.value) == {device}:
            return route.text
    return None


def _default_device(evidence: Evidence) -> Verdict | None:
    holder = evidence.suspect.holder if evidence.suspect is not None else None
    if evidence.device != "cpu" or (holder is not None and holder.kind == "parameter"):
        return None
    for made, part in ((evidence.made, _making_expression(evidence)), (evidence.root, None)):
        if made is None or made.event in ("moved", "loaded") or _comes_from_a_loop(evidence, made):
            continue
        # A comprehension has a frame of its own.
        if made.source.function_at(made.line) is None and not made.source.loops_around(made.line):
            continue
        call = _default_call(part or made.statement, made.source)
        if call is not None:
            name = made.source.text_of(call.func)
            return Verdict(
                "factory-default-device", say("{name} without `device=` makes it on the default device", name=name)
            )
    return None


def _comes_from_a_loop(evidence: Evidence, made: Made) -> bool:
    """Whether a loop handed it out and other code made it: data, which is moved where it is used, not where made."""
    suspect = evidence.suspect
    if suspect is None or suspect.binding is None or not isinstance(suspect.binding.node, ast.For | ast.AsyncFor):
        return False
    here = (made.file, made.function) == (suspect.frame.file, suspect.frame.function)
    return not here or made.line < suspect.binding.line


def _default_call(node: ast.AST | None, source: Source) -> ast.Call | None:
    """The factory without a device in `node`; data written in the source count as one."""
    data = from_data(node, source)
    return factory_call(node, source) or (data if data is not None and is_literal(data) else None)


def _making_expression(evidence: Evidence) -> ast.expr | None:
    """The expression that made it, where the failing line holds several."""
    suspect = evidence.suspect
    return (
        suspect.node if suspect is not None and suspect.route is None and isinstance(suspect.node, ast.expr) else None
    )


def _index(evidence: Evidence) -> Verdict | None:
    if evidence.operation not in _INDEXING and evidence.kind != "index-device":
        return None
    return Verdict(
        "index-device", say("the index is on another device than what it reads, and only a CPU index may be")
    )


def _not_moved(evidence: Evidence) -> Verdict | None:
    """Data that met the model without having been moved to it."""
    suspect, made = evidence.suspect, evidence.made
    if suspect is None or is_module(suspect.value):
        return None
    if suspect.holder is not None and suspect.holder.kind in ("parameter", "buffer"):
        return Verdict("model-not-moved", say("{name} is apart from the rest of its module", name=suspect.name))
    if made is not None and made.event == "moved" and evidence.device == "cpu":
        return Verdict(
            "input-not-moved",
            say(
                "line {line} brought it to the CPU, and nothing back to {expected}",
                line=made.line,
                expected=evidence.expected,
            ),
        )
    other = moved_elsewhere(suspect.route, evidence.expected) if suspect.route is not None else None
    if evidence.device == "cpu" and other is not None and suspect.route is not None:
        reason = say("{name} is as it was: what was moved of it is in {other}", name=suspect.route.base, other=other)
        return Verdict("input-not-moved", reason)
    if evidence.device == "cpu":
        return Verdict(
            "input-not-moved", say("it was made on the CPU and never moved to {expected}", expected=evidence.expected)
        )
    return None
