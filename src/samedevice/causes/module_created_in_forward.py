"""SD114 module-created-in-forward."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD114",
    slug="module-created-in-forward",
    summary="A module is built inside `forward`, after the model was moved, so it is on the CPU (and never trained).",
)
