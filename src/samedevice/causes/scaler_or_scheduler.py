"""SD203 scaler-or-scheduler."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD203",
    slug="scaler-or-scheduler",
    summary="A gradient scaler, scheduler or average keeps tensors on another device than the training step.",
)
