"""SD104 plain-container."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD104",
    slug="plain-container",
    summary="Modules or parameters in a plain list, tuple or dict are not registered, so `.to()` passes them by.",
)
