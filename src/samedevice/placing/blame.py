"""From placements that are astray to one `Finding`: the words and the shape that all judgements share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from samedevice import texts
from samedevice.causes.catalogue import SLUGS
from samedevice.findings import Culprit, Finding, Fix, Operand, Placement

__all__ = ["blame", "joins_any", "listed"]

MOST_OPERANDS = 16


def blame(
    code: str,
    astray: Sequence[Placement],
    message: str,
    *,
    fix: str,
    name: str | None = None,
    expected: str | None = None,
    reasons: Sequence[str] = (),
    severity: Literal["error", "warning"] = "error",
) -> Finding:
    """A finding about `astray`.

    Args:
        code: the cause, e.g. "SD201".
        astray: the tensors in the wrong place, at least one.
        message: one sentence.
        fix: how to mend it.
        name: what to call them together; without it, the first one's path.
        expected: where they should be.
        reasons: why, a sentence each.
        severity: "warning" for what may well do no harm.

    Returns:
        The finding; the first `MOST_OPERANDS` of `astray` are its operands.
    """
    first = astray[0]
    alone = name is None or name == first.path
    return Finding(
        code=code,
        cause=SLUGS[code],
        message=message,
        location=None,
        severity=severity,
        culprit=Culprit(
            name=name or first.path,
            device=first.device,
            shape=first.shape if alone else None,
            dtype=(first.dtype or None) if alone else None,
        ),
        expected_device=expected,
        operands=tuple(Operand(p.path, p.device, p.shape, p.dtype or None) for p in astray[:MOST_OPERANDS]),
        reasons=tuple(reasons),
        fix=Fix(fix),
    )


def joins_any(placement: Placement) -> bool:
    """Whether pointwise operations take the tensor beside any accelerator: it is 0-dim, on the CPU, and no parameter.

    Source: aten/src/ATen/TensorIterator.cpp, `compute_types`, 2.6 to 2.13.
    """
    return placement.device == "cpu" and not placement.shape and "parameter" not in placement.kind


def listed(names: Sequence[str], most: int = 3) -> str:
    """The names that a sentence of a report has room for."""
    return texts.listed(names, most)
