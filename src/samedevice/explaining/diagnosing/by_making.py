"""Causes told by the line that made the tensor or moved it: a dropped result, a checkpoint, a fixed device, a cache."""

from __future__ import annotations

import ast
from dataclasses import replace

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.making import (
    calls_cached_function,
    fixed_device,
    is_cached_function,
    is_load,
    load_call,
    map_location_of,
    sets_in_cache,
)
from samedevice.explaining.routes import Route
from samedevice.explaining.syntax import bindings_of, undressed
from samedevice.texts import say

__all__ = ["judge"]


def judge(evidence: Evidence) -> Verdict | None:
    """The cause that the making line settles, whoever holds the tensor."""
    return (
        _discarded(evidence)
        or _loaded(evidence)
        or _read_from_checkpoint(evidence)
        or _fixed(evidence)
        or _cached(evidence)
    )


def _discarded(evidence: Evidence) -> Verdict | None:
    if evidence.discarded is None:
        return None
    reason = say("a tensor's `.to()` returns the moved copy; nothing keeps it here, so the old one is used")
    return Verdict("result-discarded", reason, made=evidence.discarded)


def _loaded(evidence: Evidence) -> Verdict | None:
    made = evidence.made
    if made is None or (made.event != "loaded" and not (made.event == "" and is_load(made.statement))):
        return None
    call = load_call(made.statement)
    if call is not None and map_location_of(call) is not None:
        reason = say("its map_location is what put it on {device}", device=evidence.device)
    else:
        reason = say("torch.load put it back on {device}, where it was saved", device=evidence.device)
    return Verdict("checkpoint-map-location", reason)


def _read_from_checkpoint(evidence: Evidence) -> Verdict | None:
    """Without a record: `self.mean = state["mean"]`, with `state = torch.load(…)` in the same function."""
    made = evidence.made
    if made is None or made.recorded or not isinstance(made.statement, ast.Assign):
        return None
    function = made.source.function_at(made.line) or made.source.tree
    value = undressed(made.statement.value)
    for binding in bindings_of(value.id, function) if isinstance(value, ast.Name) else ():
        if isinstance(binding.node, ast.stmt) and is_load(binding.node):
            reason = say("it was read by torch.load, which puts tensors back where they were saved")
            return Verdict("checkpoint-map-location", reason, made=replace(made, line=binding.line))
    return None


def _fixed(evidence: Evidence) -> Verdict | None:
    made = evidence.made
    if made is None or evidence.device in ("", "cpu") or evidence.expected in ("", "cpu"):
        return None
    suspect = evidence.suspect
    in_expression = suspect is not None and suspect.route is None and fixed_device(suspect.node) is not None
    if not (in_expression or made.fixes_device):
        return None
    return Verdict(
        "hardcoded-device", say("the line fixes its device, while {expected} is in use", expected=evidence.expected)
    )


def _cached(evidence: Evidence) -> Verdict | None:
    """Filled once, when the device was another one, and used ever after."""
    made = evidence.made
    if made is not None and is_cached_function(made.source, made.line):
        return Verdict("stale-cache", say("the function keeps its result, and with it the device of the first call"))
    suspect = evidence.suspect
    call = calls_cached_function(suspect.node, suspect.frame.source) if suspect is not None else None
    if call is not None and suspect is not None:
        name = suspect.frame.source.text_of(call)
        return Verdict(
            "stale-cache", say("the function keeps its result, and with it the device of the first call"), name
        )
    routes = [suspect.route] if suspect is not None and suspect.route is not None else []
    for route in [*routes, *evidence.homes_elsewhere()]:
        name = _kept_as(route)
        line = sets_in_cache(made.source if made is not None else route.frame.source, name) if name else None
        if line is not None:
            return Verdict("stale-cache", say("{name} is filled once and keeps the device of that time", name=name))
    return None


def _kept_as(route: Route) -> str:
    """The attribute or global variable that keeps it; "" for a variable of the running call."""
    for step in reversed(route.steps):
        if step.kind == "attribute":
            return str(step.key)
    return route.base if route.scope == "global" else ""
