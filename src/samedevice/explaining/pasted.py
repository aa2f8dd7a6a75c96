"""placeholder"""
from __future__ import annotations
from samedevice.findings import Finding
def explain_text(text: str) -> Finding | None:
    return None
