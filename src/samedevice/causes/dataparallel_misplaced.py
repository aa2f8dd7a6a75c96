"""SD116 dataparallel-misplaced."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD116",
    slug="dataparallel-misplaced",
    summary="A parallel wrapper's module is not on the device that the wrapper starts from.",
)
