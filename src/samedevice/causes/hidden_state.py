"""SD120 hidden-state."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD120",
    slug="hidden-state",
    summary="The recurrent state is on another device than the input.",
)
