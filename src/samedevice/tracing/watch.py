"""`watch()`: explain the device faults of a stretch of code, with the origin of every tensor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from samedevice.explaining.explain import explain
from samedevice.faults import Origin
from samedevice.findings import Finding, Report
from samedevice.simulation import observers
from samedevice.tracing.origins import OriginTable

__all__ = ["Watch", "watch"]


class Watch:
    """What a `watch()` block has seen so far."""

    def __init__(self) -> None:
        self._origins = OriginTable()
        self._findings: list[Finding] = []

    @property
    def report(self) -> Report:
        """The findings so far: exceptions that passed through, and faults that raised nothing."""
        findings = tuple(self._findings)
        return Report(findings=findings, outcome="finding" if findings else "ok")

    def origin_of(self, tensor: Any) -> Origin | None:
        """The user's line that made, moved, loaded, copied or computed `tensor`; None where it was not seen."""
        return self._origins.origin_of(tensor)

    def moves_of(self, tensor: Any) -> tuple[Origin, ...]:
        """The copies of `tensor` made on other devices, oldest first."""
        return self._origins.moves_of(tensor)

    def source_of(self, tensor: Any) -> Any:
        """The living tensor that `tensor` was copied or moved from, or None."""
        return self._origins.source_of(tensor)


@contextlib.contextmanager
def watch() -> Iterator[Watch]:
    """Explain the device faults of a stretch of code; yields an object whose `report` holds them."""
    watching = Watch()
    unsubscribe = observers.subscribe(watching._origins.record)
    try:
        yield watching
    except Exception as error:
        finding = explain(error, origins=watching)
        if finding is not None:
            watching._findings.append(finding)
        raise
    finally:
        unsubscribe()
