"""SD103 plain-attribute."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD103",
    slug="plain-attribute",
    summary="A tensor kept as a plain attribute of a module is not moved by the module's `.to()`.",
)
