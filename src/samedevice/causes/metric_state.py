"""SD121 metric-state."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD121",
    slug="metric-state",
    summary="A metric accumulates on another device than what it is given.",
)
