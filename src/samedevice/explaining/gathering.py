"""Reads the evidence of one fault: operands, sides, who is suspected, which line made it. Decides no cause."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from samedevice.explaining.diagnosing.evidence import Evidence, spanning_model
from samedevice.explaining.discards import discarded_move
from samedevice.explaining.flow import Suspect, follow, follow_route
from samedevice.explaining.frames import UserFrame, modules_below, text_of, user_frames
from samedevice.explaining.live import (
    device_of,
    devices_of_parameters,
    is_parameter,
    is_tensor,
    requires_grad,
    same_storage,
    storage_key,
)
from samedevice.explaining.made import Made, Origins
from samedevice.explaining.making import fixed_device, is_load, sets_in_cache
from samedevice.explaining.operands import Seen, operands_of_fault, placed
from samedevice.explaining.replayed import in_replica, replayed_frames
from samedevice.explaining.routes import Route, search, search_all
from samedevice.explaining.sides import ON_THE_CPU_ONLY, Side, choose_side
from samedevice.explaining.sources import read_source
from samedevice.explaining.special import special_suspect
from samedevice.explaining.syntax import undressed
from samedevice.explaining.unattached import operands_without_fault
from samedevice.explaining.where_made import root_made, where_made
from samedevice.faults import fault_of
from samedevice.messages import Recognised
from samedevice.texts import say

__all__ = ["gather"]


def gather(
    error: BaseException, recognised: Recognised | None, origins: Origins | None, *, raised: BaseException | None = None
) -> Evidence:
    """Read everything that is known about `error`.

    Args:
        error: the fault.
        recognised: what its text says.
        origins: where tensors came from.
        raised: what the user saw; of a fault that a library caught, only this one passed through the user's code.
    """
    frames = user_frames(error) or (user_frames(raised) if raised is not None else [])
    frames += replayed_frames(text_of(error), frames)
    fault = fault_of(error)
    evidence = Evidence(error, frames, fault, recognised, origins=origins)
    evidence.suspect = special_suspect(recognised, frames)
    if fault is not None:
        evidence.seen = operands_of_fault(fault, evidence.frame, modules_below(error))
    elif evidence.frame is not None:
        seen = operands_without_fault(error, evidence.frame, recognised)
        evidence.seen = [in_replica(one, text_of(error)) for one in seen]
    if evidence.suspect is None:
        suspects = {id(one): follow(one, frames) for one in evidence.seen}
        evidence.side = choose_side(
            _accountable(evidence.seen, evidence.operation),
            recognised,
            lambda one: _suspicion(one, suspects.get(id(one)), origins) - _at_home(one, evidence),
        )
        evidence.suspect = _before_copy(_wrong_one(evidence.side, suspects, frames, origins), frames, origins)
        _blame_what_flows(evidence, suspects)
        evidence.suspect = _result_itself(evidence.suspect, evidence.side, recognised)
        evidence.suspect = _held_outside(evidence.suspect, frames)
    if evidence.suspect is not None:
        evidence.made = where_made(evidence.suspect, origins)
        evidence.root = root_made(evidence.suspect, origins)
        expected = evidence.side.expected if evidence.side is not None else ""
        evidence.discarded = discarded_move(evidence.suspect, expected, origins)
    return evidence


def _held_outside(suspect: Suspect | None, frames: list[UserFrame]) -> Suspect | None:
    """A layer's own `self.weight` is its caller's `self.parts[0].weight`: a plain list is why no move reached it."""
    route = suspect.route if suspect is not None else None
    if route is None or not route.starts_at_self or not route.steps:
        return suspect
    if any(step.kind not in ("submodule", "parameter", "buffer") for step in route.steps):
        return suspect
    module = route.steps[0].owner
    for depth in range(len(frames) - 1, -1, -1):
        if frames[depth].frame.f_locals.get("self") is module:
            continue
        found = next(search(frames[depth], lambda value: value is module), None)
        if found is not None:
            steps = (*found.steps, *route.steps)
            outer = follow_route(Route(found.frame, found.base, found.scope, steps, route.value), frames, depth)
            if outer.route is not None and outer.route.plain_container() is not None:
                return outer
    return suspect


def _result_itself(suspect: Suspect | None, side: Side | None, recognised: Recognised | None) -> Suspect | None:
    """Where the CPU alone is welcome, a layer is right where it is: what it returned is what has to come over."""
    if suspect is None or side is None or recognised is None or side.reason != ON_THE_CPU_ONLY:
        return suspect
    wrong = next(iter(side.wrong), None)
    inner = undressed(wrong.node) if wrong is not None and wrong.node is not None else None
    if wrong is None or not isinstance(inner, ast.Call):
        return suspect
    frame = suspect.frame
    return Suspect(frame.source.text_of(inner), frame, wrong.tensor, suspect.device, None, inner)


def _blame_what_flows(evidence: Evidence, suspects: dict[int, Suspect | None]) -> None:
    """Between the parts of a model that is spread on purpose, the data goes to the part, not the part to the data."""
    suspect, side = evidence.suspect, evidence.side
    if suspect is None or side is None or suspect.holder is None or "cpu" in (suspect.device, side.expected):
        return
    flowing = tuple(one for one in evidence.seen if one.device == side.expected and not is_parameter(one.tensor))
    found = next((each for one in flowing if (each := suspects.get(id(one))) is not None), None)
    if suspect.holder.kind == "parameter" and found is not None and spanning_model(evidence) is not None:
        evidence.side = Side(
            flowing, suspect.device, say("the parameters of that part are on {device}", device=suspect.device)
        )
        evidence.suspect = found


def _accountable(seen: Sequence[Seen], operation: str) -> list[Seen]:
    """The operands that may be at fault: indices on the CPU are welcome wherever something is written."""
    return [one for one in seen if not (operation.startswith("index_put") and (one.argument or "").startswith("ind"))]


def _wrong_one(
    side: Side | None, suspects: dict[int, Suspect | None], frames: list[UserFrame], origins: Origins | None
) -> Suspect | None:
    if side is None or not frames:
        return None
    found = [suspects.get(id(one)) for one in side.wrong]
    named = next((suspect for suspect in found if suspect is not None), None)
    return named or next(
        (
            made
            for one in side.wrong
            if (made := _that_entered(one, frames, origins) or _named_by_origin(one, frames[-1], origins)) is not None
        ),
        None,
    )


def _that_entered(one: Seen, frames: list[UserFrame], origins: Origins | None) -> Suspect | None:
    """What the running line gave to a library, which computed from it what was refused there."""
    origin = origins.origin_of(one.tensor) if origins is not None and one.tensor is not None else None
    running = frames[-1]
    if origin is None or (origin.file, origin.line, origin.function) != (running.file, running.line, running.function):
        return None
    given = origins.entered_of(one.tensor) if origins is not None else None
    if given is None:
        return None
    found = next(search_all(reversed(frames), lambda value: is_tensor(value) and storage_key(value) == given), None)
    if found is None or device_of(found.value) != one.device:
        return None
    return follow(placed([replace(one, tensor=found.value)], running)[0], frames)


def _named_by_origin(one: Seen, frame: UserFrame, origins: Origins | None) -> Suspect | None:
    """A tensor that no variable of the running functions reaches, by what the line that made it calls it."""
    origin = origins.origin_of(one.tensor) if origins is not None and one.tensor is not None else None
    if origin is None or not origin.file:
        return None
    source = read_source(origin.file)
    statement = source.statement_at(origin.line)
    value = statement.targets[0] if isinstance(statement, ast.Assign) else None
    value = statement.value if isinstance(statement, ast.Return) else value
    if value is None:
        return None
    name = source.text_of(value)
    return Suspect(name, frame, one.tensor, one.device)


def _before_copy(suspect: Suspect | None, frames: list[UserFrame], origins: Origins | None) -> Suspect | None:
    """The tensor that the suspect was copied from, where it still lives in an attribute: there it was left behind."""
    if suspect is None or origins is None or not is_tensor(suspect.value):
        return suspect
    origin = origins.origin_of(suspect.value)
    source = origins.source_of(suspect.value) if origin is not None and origin.event == "copied" else None
    if source is None or device_of(source) != suspect.device:
        return suspect
    for route in search_all(reversed(frames), lambda value: is_tensor(value) and same_storage(value, source)):
        if any(step.kind == "attribute" for step in route.steps):
            return follow_route(route, frames, frames.index(route.frame))
    return suspect


def _suspicion(one: Seen, suspect: Suspect | None, origins: Origins | None) -> float:
    """How likely an operand is the one in the wrong place, between two accelerators."""
    if suspect is None:
        return 0.0
    score = 0.0
    made = where_made(suspect, origins)
    if made is not None:
        score += 3.0 if _fixes_device(suspect, made) else 0.0
        score += 3.0 if made.event == "loaded" or is_load(made.statement) else 0.0
        score += 3.0 if _is_cached(suspect, made) else 0.0
    steps = suspect.route.steps if suspect.route is not None else ()
    if steps and steps[-1].kind in ("attribute", "item"):
        score += 2.0 if any(step.kind == "attribute" for step in steps) else 0.0
    elif steps and steps[-1].kind in ("parameter", "buffer"):
        score += 1.5 if any(step.kind == "item" for step in steps) else -1.0
    # What is trained says where the work is done; a target or a teacher's output comes to it.
    score -= 0.75 if requires_grad(one.tensor) else 0.0
    return score + (0.5 if one.argument in ("index", "mask", "indices", "weight") else 0.0)


def _at_home(one: Seen, evidence: Evidence) -> float:
    """What speaks for an operand that is where all of the user's models are."""
    homes = {device for route in evidence.models() for device in devices_of_parameters(route.value)}
    return 1.0 if homes == {one.device} else 0.0


def _fixes_device(suspect: Suspect, made: Made) -> bool:
    if suspect.route is None and isinstance(suspect.node, ast.expr):
        return fixed_device(suspect.node) is not None
    return made.fixes_device


def _is_cached(suspect: Suspect, made: Made) -> bool:
    name = suspect.name.rpartition(".")[2].partition("[")[0]
    return sets_in_cache(made.source, name) is not None
