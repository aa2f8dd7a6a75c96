"""SD109 index-device."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD109",
    slug="index-device",
    summary="A tensor is indexed by one on another device.",
)
