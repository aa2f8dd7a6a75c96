"""SD110 lengths-must-be-cpu."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD110",
    slug="lengths-must-be-cpu",
    summary="Sequence lengths have to be on the CPU, and these are on the accelerator.",
)
