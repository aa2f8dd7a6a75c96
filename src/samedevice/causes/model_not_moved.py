"""SD102 model-not-moved."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD102",
    slug="model-not-moved",
    summary="The input is on the accelerator and the model was never moved there.",
)
