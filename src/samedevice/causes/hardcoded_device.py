"""SD107 hardcoded-device."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD107",
    slug="hardcoded-device",
    summary='A fixed device, such as `.cuda()` or "cuda:0", stands where another device is in use.',
)
