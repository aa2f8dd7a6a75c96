"""SD108 nested-batch."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD108",
    slug="nested-batch",
    summary="The batch was moved in part: a tensor deeper in the dict, list or object stayed behind.",
)
