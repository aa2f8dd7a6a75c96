"""SD113 checkpoint-map-location."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD113",
    slug="checkpoint-map-location",
    summary="A checkpoint puts its tensors back where they were saved, which is not where they are needed here.",
)
