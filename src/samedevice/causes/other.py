"""SD900 other."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD900",
    slug="other",
    summary="A device fault that fits no other cause.",
)
