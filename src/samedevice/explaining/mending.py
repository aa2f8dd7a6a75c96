"""placeholder"""
from __future__ import annotations
from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.where_made import Made
from samedevice.findings import Fix
def mend(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    return None
