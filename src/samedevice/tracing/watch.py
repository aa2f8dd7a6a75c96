"""`watch()`: explain the device faults of a stretch of code, with the origin of every tensor.

What is reported: device faults that leave the block as exceptions, and the faults that raise nothing (`silent`).
What is not seen: operators inside compiled graphs, and on a real machine those of other threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from samedevice.explaining.explain import explain
from samedevice.faults import Origin
from samedevice.findings import Finding, Report
from samedevice.simulation import machine, observers
from samedevice.simulation.patching import Applied
from samedevice.tracing import copies
from samedevice.tracing.modes import WatchMode
from samedevice.tracing.origins import OriginTable
from samedevice.tracing.silent import SilentFaults

__all__ = ["Watch", "watch"]


class Watch:
    """What a `watch()` block has seen so far; made by `watch`, not by hand."""

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

    def root_of(self, tensor: Any) -> Origin | None:
        """The line where the data that `tensor` was computed from were made, moved or loaded."""
        return self._origins.root_of(tensor)

    def source_of(self, tensor: Any) -> Any:
        """The living tensor that `tensor` was copied or moved from, or None."""
        return self._origins.source_of(tensor)

    def entered_of(self, tensor: Any) -> int | None:
        """The storage from before its line that `tensor` was computed from by that line, as its `_cdata`, or None."""
        return self._origins.entered_of(tensor)


@contextlib.contextmanager
def watch() -> Iterator[Watch]:
    """Explain the device faults of a stretch of code, exactly, since the origin of each tensor is recorded.

        with samedevice.watch() as watching:
            train(model, loader)
        print(watching.report)

    An exception goes on as it was; its explanation is in the report. Inside a `simulate()` block the simulated devices
    are watched, else the real ones.

    Yields:
        An object with `report` and, for a single tensor, `origin_of`.
    """
    watching = Watch()
    silent = SilentFaults(watching._origins, watching._findings.append)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_observed(watching._origins, silent))
            stack.enter_context(silent.watching())
            try:
                yield watching
            except Exception as error:
                # Explained while the devices are still those of the fault.
                finding = explain(error, origins=watching)
                if finding is not None:
                    watching._findings[:] = [
                        finding,
                        *(each for each in watching._findings if not _same(each, finding)),
                    ]
                raise
    finally:
        del silent


def _same(silent: Finding, raised: Finding) -> bool:
    """Whether a fault that raised nothing at first is the one that raised something in the end."""
    first, second = silent.culprit, raised.culprit
    if first is None or second is None or silent.cause != raised.cause:
        return False
    return first.line is not None and (first.file, first.line) == (second.file, second.line)


@contextlib.contextmanager
def _observed(origins: OriginTable, silent: SilentFaults) -> Iterator[None]:
    """Events of the running simulation, or of the real devices."""

    def observe(event: observers.Event) -> None:
        origins.record(event)
        if event.kind == "moved" or silent.waits:
            silent.look(event)

    unsubscribe = observers.subscribe(observe)
    mode = WatchMode(observe) if machine.active() is None else contextlib.nullcontext()
    try:
        with mode, Applied(copies.patches(origins.record)):
            yield
    finally:
        unsubscribe()
