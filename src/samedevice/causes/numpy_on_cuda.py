"""SD112 numpy-on-cuda."""

from samedevice.causes.cause import Cause

CAUSE = Cause(
    code="SD112",
    slug="numpy-on-cuda",
    summary="A tensor on the accelerator is handed to NumPy, which reads CPU memory only.",
)
