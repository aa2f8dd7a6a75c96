"""SD201 optimizer-state."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD201",
    slug="optimizer-state",
    summary="The optimizer's state is on another device than its parameters.",
)
