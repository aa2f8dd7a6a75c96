"""SD119 second-model-not-moved."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD119",
    slug="second-model-not-moved",
    summary="A second model (teacher, average, target network) was left behind when the first was moved.",
)
