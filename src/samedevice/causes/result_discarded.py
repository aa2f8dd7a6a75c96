"""SD105 result-discarded."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD105",
    slug="result-discarded",
    summary="`tensor.to(device)` returns a new tensor; the result was dropped.",
)
