"""From evidence and verdict to the `Finding`: plain values only, nothing that keeps a tensor, a frame or a module."""

from __future__ import annotations

import contextlib

from samedevice.causes import catalogue
from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.frames import text_of
from samedevice.explaining.live import describe, device_of, is_tensor, name_of_class
from samedevice.explaining.made import Made
from samedevice.explaining.mending.mend import mend
from samedevice.explaining.operands import Seen
from samedevice.explaining.operations import operation_of
from samedevice.explaining.reading import members
from samedevice.explaining.routes import value_of
from samedevice.explaining.sides import ON_THE_CPU_ONLY
from samedevice.findings import Culprit, Finding, Fix, Operand, Raised
from samedevice.messages import Recognised
from samedevice.texts import say

__all__ = ["code_of", "finding_from", "finding_from_message"]


def finding_from(evidence: Evidence, verdict: Verdict) -> Finding:
    """The record of the fault, free of every live object."""
    made = verdict.made or evidence.made
    culprit = _culprit(evidence, verdict, made)
    error = evidence.error
    reasons = tuple(reason for reason in (_side_reason(evidence, verdict), verdict.reason) if reason)
    operation = evidence.fault.operation if evidence.fault is not None else None
    operation = operation or operation_of(evidence.recognised, evidence.frame, evidence.error)
    return Finding(
        code=code_of(verdict.slug),
        cause=verdict.slug,
        message=_sentence(evidence, culprit, operation),
        location=evidence.frame.location if evidence.frame is not None else None,
        raised=Raised(name_of_class(type(error)), text_of(error)),
        operation=operation,
        culprit=culprit,
        expected_device=evidence.expected or _said_to_be_expected(evidence.recognised),
        operands=tuple(_operand(one, evidence) for one in evidence.seen),
        reasons=reasons,
        fix=_mend(evidence, verdict, made),
    )


def _mend(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    # A mend that cannot be worked out must not cost the explanation.
    with contextlib.suppress(Exception):
        return mend(evidence, verdict, made)
    return None


def code_of(slug: str) -> str:
    """The stable code of a cause, e.g. "SD103"."""
    return next((code for code, known in catalogue.SLUGS.items() if known == slug), "SD900")


def _culprit(evidence: Evidence, verdict: Verdict, made: Made | None) -> Culprit | None:
    suspect = evidence.suspect
    name = verdict.name or _shared_container(evidence) or (suspect.name if suspect is not None else None)
    if name is None:
        return None
    wrong = evidence.side.wrong if evidence.side is not None else ()
    device = suspect.device if suspect is not None else next((one.device for one in wrong), None)
    shape, dtype = None, None
    if suspect is not None and is_tensor(suspect.value):
        _, shape, dtype = describe(suspect.value)
    return Culprit(
        name=name,
        file=made.file if made is not None else None,
        line=made.line if made is not None else None,
        device=device or None,
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
    return Operand(name or one.argument or say("a tensor"), one.device, one.shape, one.dtype, one.argument)


def _sentence(evidence: Evidence, culprit: Culprit | None, operation: str | None) -> str:
    called = operation.rpartition("::")[2] if operation else ""
    told = _told(evidence, culprit)
    return say("{operation}: {message}", operation=called, message=told) if called else told


def _told(evidence: Evidence, culprit: Culprit | None) -> str:
    if culprit is None or not culprit.device:
        return next(iter(text_of(evidence.error).splitlines()), say("a device fault"))
    expected = evidence.expected or _said_to_be_expected(evidence.recognised)
    if not expected:
        return say("{name} is on {device}", name=culprit.name, device=culprit.device)
    return say(
        "{name} is on {device}, expected on {expected}", name=culprit.name, device=culprit.device, expected=expected
    )


def _said_to_be_expected(recognised: Recognised | None) -> str | None:
    if recognised is None:
        return None
    for key in ("expected", "result", "input", "device_ids[0]", "self"):
        if key in recognised.places:
            return recognised.places[key]
    return None


_NAMES_THE_SIDE = ("lengths-must-be-cpu", "numpy-on-cuda")
"""Causes whose reason says why the CPU: that the operation demands it would say the same again."""


def _side_reason(evidence: Evidence, verdict: Verdict) -> str:
    if evidence.side is None or (verdict.slug in _NAMES_THE_SIDE and evidence.side.reason == ON_THE_CPU_ONLY):
        return ""
    return evidence.side.reason


def finding_from_message(fault: BaseException | str, recognised: Recognised) -> Finding:
    """What the message alone says, when the program could not be read."""
    text = fault if isinstance(fault, str) else text_of(fault)
    kind = recognised.exception if isinstance(fault, str) else name_of_class(type(fault))
    slug = recognised.cause or "other"
    message = text[recognised.start : recognised.end]
    return Finding(
        code=code_of(slug), cause=slug, message=message, location=None, raised=Raised(kind, message),
        operation=operation_of(recognised, None), expected_device=_said_to_be_expected(recognised),
        operands=operands_said(recognised),
    )  # fmt: skip


def operands_said(recognised: Recognised) -> tuple[Operand, ...]:
    """What is where, as far as the message says."""
    return tuple(Operand(name, device, argument=name) for name, device in recognised.places.items())
