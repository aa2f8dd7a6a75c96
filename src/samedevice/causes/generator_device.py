"""SD111 generator-device."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD111",
    slug="generator-device",
    summary="The random generator belongs to another device than the tensor to be drawn.",
)
