"""Asks the judges in turn: the message, the making line, the owner, the holder, the variable."""

from __future__ import annotations

from samedevice.explaining.diagnosing import by_holder, by_making, by_message, by_owner, by_value, traced
from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.texts import say

__all__ = ["diagnose"]

# The order is the strength of the evidence. Who owns a parameter says more than the line that made it, but a
# checkpoint or a cache says more than that a plain attribute holds its tensor.
_JUDGES = (traced.judge, by_message.judge, by_owner.judge, by_making.judge, by_holder.judge, by_value.judge)


def diagnose(evidence: Evidence) -> Verdict:
    """The cause of the fault, or `other` with what is known.

    Args:
        evidence: everything that was read.

    Returns:
        The first claim made on evidence.
    """
    for judge in _JUDGES:
        verdict = judge(evidence)
        if verdict is not None:
            return verdict
    return Verdict("other", say("none of the known causes fits what was seen"))
