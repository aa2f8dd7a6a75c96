"""SD106 factory-default-device."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD106",
    slug="factory-default-device",
    summary="A tensor is created without `device=`, so it lands on the CPU among tensors that are elsewhere.",
)
