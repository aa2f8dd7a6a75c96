"""SD202 optimizer-stale-params."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD202",
    slug="optimizer-stale-params",
    summary="The optimizer holds parameters that the model no longer has, so they never train.",
)
