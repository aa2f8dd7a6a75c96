"""SD115 split-model."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD115",
    slug="split-model",
    summary="The parts of one model are on different devices and a tensor crosses over without being moved.",
)
