"""`explain`: an exception, or a pasted traceback, in; a `Finding` out.

This is the one entry to the package and the wall behind which nothing escapes: an explanation that fails inside falls
back to what the message alone says, and never raises.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import cast

from samedevice.explaining.describing import finding_from, finding_from_message
from samedevice.explaining.diagnosing.diagnose import diagnose
from samedevice.explaining.frames import chain_of, text_of, user_frames
from samedevice.explaining.gathering import gather
from samedevice.explaining.live import is_kind
from samedevice.explaining.made import Origins
from samedevice.explaining.pasted import explain_text
from samedevice.faults import fault_of
from samedevice.findings import Finding
from samedevice.messages import recognise

__all__ = ["explain"]

_MAYBE_OF_DEVICES = ("empty-optimizer", "lr-tensor", "rng-state")
"""Messages that have other reasons, too: they are device faults only where one is seen behind them."""


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
        if is_kind(fault, str):
            return explain_text(fault)
        return _explain_exception(cast("BaseException", fault), origins)
    except Exception:
        # Whatever goes wrong while explaining must not stand in front of the user's own error.
        return _from_message(fault)


def _explain_exception(error: BaseException, origins: Origins | None) -> Finding | None:
    # A library that catches a refused operator words it anew: what was attached to the first says more.
    for each in sorted(chain_of(error), key=lambda each: fault_of(each) is None):
        recognised = recognise(text_of(each))
        if recognised is not None or fault_of(each) is not None:
            evidence = gather(each, recognised, origins, raised=error)
            verdict = diagnose(evidence)
            if evidence.kind in _MAYBE_OF_DEVICES and verdict.slug == "other":
                continue
            if recognised is not None and not recognised.certain and evidence.side is None:
                continue
            return finding_from(evidence, verdict)
    return None


def _from_message(fault: BaseException | str) -> Finding | None:
    with contextlib.suppress(Exception):
        if is_kind(fault, str):
            said = recognise(fault)
            return finding_from_message(fault, said) if said is not None and said.certain else None
        for each in chain_of(cast("BaseException", fault)):
            recognised = recognise(text_of(each))
            if recognised is not None and recognised.certain:
                return _placed(finding_from_message(each, recognised), each)
    return None


def _placed(finding: Finding, error: BaseException) -> Finding:
    """With what needs no reading of the program: the user's deepest frame, and the operator that was attached."""
    attached = fault_of(error)
    operation = attached.operation if attached is not None else finding.operation
    location = None
    with contextlib.suppress(Exception):
        location = user_frames(error)[-1].location
    return replace(finding, location=location, operation=operation)
