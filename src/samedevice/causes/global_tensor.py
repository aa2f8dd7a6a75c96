"""SD117 global-tensor."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD117",
    slug="global-tensor",
    summary="A tensor made at module level or held by a closure stays where it was made.",
)
