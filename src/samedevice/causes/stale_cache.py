"""SD118 stale-cache."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD118",
    slug="stale-cache",
    summary="A cached mask or table is used again after the device has changed.",
)
