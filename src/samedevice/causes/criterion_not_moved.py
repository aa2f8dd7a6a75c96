"""SD122 criterion-not-moved."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD122",
    slug="criterion-not-moved",
    summary="The loss holds tensors (class weights, for one) and was not moved with the model.",
)
