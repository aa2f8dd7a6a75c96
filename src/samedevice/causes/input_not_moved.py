"""SD101 input-not-moved."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD101",
    slug="input-not-moved",
    summary="The model is on the accelerator and its input was left on the CPU.",
)
