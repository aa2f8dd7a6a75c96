"""`explain`: an exception, or a pasted traceback, in; a `Finding` out.

This is the one entry to the package. It puts the steps together (frames, operands, side, walk back, making line,
cause, mend) and is the wall behind which nothing escapes: an explanation that fails inside falls back to what the
message alone says, and never raises.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from samedevice.causes import catalogue
from samedevice.explaining.diagnosing.diagnose import diagnose
from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.making import fixed_device, is_load, sets_in_cache
from samedevice.explaining.flow import Suspect, follow, follow_route
from samedevice.explaining.frames import UserFrame, chain_of, user_frames
from samedevice.explaining.live import describe, device_of, is_tensor, same_storage
from samedevice.explaining.mending.mend import mend
from samedevice.explaining.operands import Seen, operands_of
from samedevice.explaining.pasted import explain_text
from samedevice.explaining.reading import members
from samedevice.explaining.routes import search, value_of
from samedevice.explaining.sides import Side, choose_side
from samedevice.explaining.sources import read_source
from samedevice.explaining.special import special_suspect
from samedevice.explaining.where_made import Made, Origins, discarded_move, root_made, where_made
from samedevice.faults import fault_of
from samedevice.findings import Culprit, Finding, Location, Operand, Raised
from samedevice.messages import Recognised, recognise

__all__ = ["explain"]


def explain(fault: BaseException | str, *, origins: Origins | None = None) -> Finding | None:
    """Explain a device fault: which tensor is in the wrong place, where it was left behind, why, and how to mend it.

        try:
            model(batch["image"])
        except RuntimeError as error:
            print(samedevice.explain(error))

    Args:
        fault: an exception as it was caught, or the text of a traceback, a log or a single error line.
        origins: what `samedevice.watch()` recorded, for an exact answer; without it the source is read.

    Returns:
        The finding, or None where `fault` is no device fault. Nothing in it refers to a tensor, a frame or a module.
    """
    try:
        return explain_text(fault) if isinstance(fault, str) else _explain_exception(fault, origins)
    except Exception:
        # Whatever goes wrong while explaining must not stand in front of the user's own error.
        return _from_message(fault)


def _explain_exception(error: BaseException, origins: Origins | None) -> Finding | None:
    for each in chain_of(error):
        recognised = recognise(text_of(each))
        if recognised is not None or fault_of(each) is not None:
            evidence = gather(each, recognised, origins)
            return finding_from(evidence, diagnose(evidence))
    return None


def text_of(error: BaseException) -> str:
    """The exception's text without asking it: a class of the user's may have a `__str__` of its own."""
    arguments = BaseException.args.__get__(error)  # type: ignore[attr-defined]
    return arguments[0] if arguments and type(arguments[0]) is str else ""


def gather(error: BaseException, recognised: Recognised | None, origins: Origins | None) -> Evidence:
    """Read everything that is known about `error`."""
    frames = user_frames(error)
    fault = fault_of(error)
    evidence = Evidence(error, frames, fault, recognised, origins=origins)
    evidence.suspect = special_suspect(recognised, frames)
    evidence.seen = operands_of(fault, frames[-1] if frames else None)
    if evidence.suspect is None:
        suspects = {id(one): follow(one, frames) for one in evidence.seen}
        evidence.side = choose_side(
            evidence.seen, recognised, lambda one: _suspicion(one, suspects.get(id(one)), origins)
        )
        evidence.suspect = _before_copy(_wrong_one(evidence.side, suspects, frames, origins), frames, origins)
    if evidence.suspect is not None:
        evidence.made = where_made(evidence.suspect, origins)
        evidence.root = root_made(evidence.suspect, origins)
        expected = evidence.side.expected if evidence.side is not None else ""
        evidence.discarded = discarded_move(evidence.suspect, expected, origins)
    return evidence


def _wrong_one(
    side: Side | None, suspects: dict[int, Suspect | None], frames: list[UserFrame], origins: Origins | None
) -> Suspect | None:
    if side is None or not frames:
        return None
    found = [suspects.get(id(one)) for one in side.wrong]
    named = next((suspect for suspect in found if suspect is not None), None)
    return named or next(
        (made for one in side.wrong if (made := _named_by_origin(one, frames[-1], origins)) is not None), None
    )


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
    for depth in range(len(frames) - 1, -1, -1):
        for route in search(frames[depth], lambda value: is_tensor(value) and same_storage(value, source)):
            if any(step.kind == "attribute" for step in route.steps):
                return follow_route(route, frames, depth)
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
    return score + (0.5 if one.argument in ("index", "mask", "indices", "weight") else 0.0)


def _fixes_device(suspect: Suspect, made: Made) -> bool:
    if suspect.route is None and isinstance(suspect.node, ast.expr):
        return fixed_device(suspect.node) is not None
    return made.fixes_device


def _is_cached(suspect: Suspect, made: Made) -> bool:
    name = suspect.name.rpartition(".")[2].partition("[")[0]
    return sets_in_cache(made.source, name) is not None


def finding_from(evidence: Evidence, verdict: Verdict) -> Finding:
    """The record of the fault, free of every live object."""
    made = verdict.made or evidence.made
    culprit = _culprit(evidence, verdict, made)
    error = evidence.error
    reasons = tuple(reason for reason in (_side_reason(evidence), verdict.reason) if reason)
    operation = evidence.fault.operation if evidence.fault is not None else _spoken_operation(evidence.recognised)
    return Finding(
        code=code_of(verdict.slug),
        cause=verdict.slug,
        message=_sentence(evidence, culprit, operation),
        location=location_of(evidence.frame),
        raised=Raised(type(error).__name__, text_of(error)),
        operation=operation,
        culprit=culprit,
        expected_device=evidence.expected or _said_to_be_expected(evidence.recognised),
        operands=tuple(_operand(one, evidence) for one in evidence.seen),
        reasons=reasons,
        fix=mend(evidence, verdict, made),
    )


def code_of(slug: str) -> str:
    """The stable code of a cause, e.g. "SD103"."""
    return next((code for code, known in catalogue.SLUGS.items() if known == slug), "SD900")


def location_of(frame: UserFrame | None) -> Location | None:
    """Where the fault surfaced: the deepest line of the user's own code."""
    if frame is None:
        return None
    return Location(frame.file, frame.line, frame.function, source=frame.source.line(frame.line) or None)


def _culprit(evidence: Evidence, verdict: Verdict, made: Made | None) -> Culprit | None:
    suspect = evidence.suspect
    if suspect is None:
        return None
    device, shape, dtype = suspect.device or None, None, None
    if is_tensor(suspect.value):
        _, shape, dtype = describe(suspect.value)
    return Culprit(
        name=verdict.name or _shared_container(evidence) or suspect.name,
        file=made.file if made is not None else None,
        line=made.line if made is not None else None,
        device=device,
        shape=shape,
        dtype=dtype,
        source=(made.text or None) if made is not None else None,
    )


def _shared_container(evidence: Evidence) -> str | None:
    """The list that holds several of the wrong operands: `scores` rather than `scores[5]`."""
    route = evidence.suspect.route if evidence.suspect is not None else None
    if route is None or not route.steps or route.steps[-1].kind != "item" or type(route.steps[-1].key) is not int:
        return None
    owner, device = route.steps[-1].owner, evidence.suspect.device if evidence.suspect is not None else ""
    wrong = evidence.side.wrong if evidence.side is not None else ()
    passed = any(one.node is not None and value_of(one.node, route.frame) is owner for one in wrong)
    inside = [value for _, _, value in members(owner) if is_tensor(value) and device_of(value) == device]
    if len(inside) < 2 or not passed:
        return None
    return route.parent().text


def _operand(one: Seen, evidence: Evidence) -> Operand:
    name = one.name
    if not name and one.node is not None and evidence.frame is not None:
        name = evidence.frame.source.text_of(one.node)
    return Operand(name or one.argument or "a tensor", one.device, one.shape, one.dtype, one.argument)


def _sentence(evidence: Evidence, culprit: Culprit | None, operation: str | None) -> str:
    name = operation.rpartition("::")[2] if operation else ""
    head = f"{name}: " if name else ""
    if culprit is None or not culprit.device:
        return head + (text_of(evidence.error).splitlines() or ["a device fault"])[0]
    expected = evidence.expected or _said_to_be_expected(evidence.recognised)
    return f"{head}{culprit.name} is on {culprit.device}" + (f", expected on {expected}" if expected else "")


def _said_to_be_expected(recognised: Recognised | None) -> str | None:
    if recognised is None:
        return None
    for key in ("expected", "result", "input", "device_ids[0]", "self"):
        if key in recognised.places:
            return recognised.places[key]
    return None


def _side_reason(evidence: Evidence) -> str:
    return evidence.side.reason if evidence.side is not None else ""


def _spoken_operation(recognised: Recognised | None) -> str | None:
    operator = recognised.operator if recognised is not None else None
    if operator is None:
        return None
    return operator if "." in operator else f"aten::{operator}"


def _from_message(fault: BaseException | str) -> Finding | None:
    """What the message alone says, when the program could not be read."""
    text = fault if isinstance(fault, str) else text_of(fault)
    recognised = recognise(text)
    if recognised is None:
        return None
    kind = recognised.exception if isinstance(fault, str) else type(fault).__name__
    slug = recognised.cause or "other"
    message = text[recognised.start : recognised.end]
    return Finding(
        code=code_of(slug), cause=slug, message=message, location=None, raised=Raised(kind, message),
        operation=_spoken_operation(recognised), expected_device=_said_to_be_expected(recognised),
        operands=operands_said(recognised),
    )  # fmt: skip


def operands_said(recognised: Recognised) -> tuple[Operand, ...]:
    """What is where, as far as the message says."""
    return tuple(Operand(name, device, argument=name) for name, device in recognised.places.items())


def without_live_objects(finding: Finding) -> Finding:
    """`finding` as a value of its own; a guard for tests: everything in it is a plain value already."""
    return replace(finding)


def explain_all(errors: Sequence[Any], origins: Origins | None = None) -> list[Finding]:
    """The findings of several exceptions, those that are no device faults left out."""
    return [finding for error in errors if (finding := explain(error, origins=origins)) is not None]
