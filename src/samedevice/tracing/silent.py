"""Device faults that raise nothing: found when an optimizer steps, and when a module is moved.

What is reported, always as a warning:
    - an optimizer that steps parameters which the model does not have any more, while the model's own train nowhere
      (`stale_optimizers`);
    - a parameter that a `.to()` made a plain tensor, so that no optimizer can hold it (`moved_parameters`);
    - an optimizer whose tensors get no gradient, while moved copies of them do (`trained_copies`);
    - a tensor whose `.to()` nothing keeps, used where it was (`dropped_moves`);
    - parameters that shared their values until a move made two copies of them (`ties`), and buffers that did, once one
      of the two is written (`split_buffers`).
State on another device than its parameter raises in the step. Adam's `step` beside its parameter is right, if slow.
What it does not see: models that no variable of the running functions reaches, and steps that no
`torch.optim.Optimizer` makes. Each claim needs the whole pattern; half of it is somebody's purpose.

Uses the global hook of optimizers (`register_optimizer_step_pre_hook`, torch 2.0 and newer) and two patched methods,
undone at the end. Steps are looked at when their count is a power of two.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from samedevice.explaining.routes import modules_named
from samedevice.findings import Finding
from samedevice.simulation.observers import Event
from samedevice.simulation.patching import Applied, Patch
from samedevice.tracing import moved_parameters, stale_optimizers, ties, trained_copies
from samedevice.tracing.dropped_moves import DroppedMoves
from samedevice.tracing.origins import OriginTable
from samedevice.tracing.split_buffers import SplitBuffers
from samedevice.tracing.stacks import user_stack
from samedevice.tracing.stale_optimizers import Constructed

__all__ = ["SilentFaults"]

_Seen = TypeVar("_Seen")


class SilentFaults:
    """Looks for faults that raise nothing while it is `watching`.

    Args:
        origins: where tensors came from.
        report: called with each finding, once.
    """

    def __init__(self, origins: OriginTable, report: Callable[[Finding], None]) -> None:
        self._origins = origins
        self._report = report
        self._optimizers: weakref.WeakKeyDictionary[Any, Constructed] = weakref.WeakKeyDictionary()
        self._reported: set[tuple[str, str | None, int | None]] = set()
        self._moving = threading.local()
        self._split = SplitBuffers()
        self._dropped = DroppedMoves(origins, lambda finding: self._add(iter((finding,))))

    @property
    def waits(self) -> bool:
        """Whether events other than moves are to be looked at, too."""
        return self._dropped.waiting

    def look(self, event: Event) -> None:
        """Look at one event, which `origins` has noted."""
        self._guarded(lambda: self._dropped.look(event))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Within it optimizers' steps and modules' moves are looked at."""
        handle = register_optimizer_step_pre_hook(self._before_step)
        patches = [
            Patch(torch.optim.Optimizer, "__init__", self._noting(torch.optim.Optimizer.__init__)),
            Patch(torch.nn.Module, "_apply", self._comparing(torch.nn.Module._apply)),
        ]
        try:
            with Applied(patches):
                yield
        finally:
            handle.remove()

    def _noting(self, construct: Any) -> Any:
        """`Optimizer.__init__`, with the user's line that called it kept."""

        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            construct(optimizer, *args, **kwargs)
            frame = next(user_stack(), None)
            self._optimizers[optimizer] = Constructed(frame.file if frame else "", frame.line if frame else 0)

        return __init__

    def _comparing(self, apply: Any) -> Any:
        """`Module._apply`, with the ties between parameters compared before and after the outermost call."""

        def _apply(module: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._moving, "inside", False):
                return apply(module, *args, **kwargs)
            self._moving.inside = True
            try:
                tied = self._guarded(lambda: ties.ties_in(module))
                shared = self._guarded(lambda: self._split.shared_in(module))
                result = apply(module, *args, **kwargs)
            finally:
                self._moving.inside = False
            self._guarded(lambda: self._add(ties.broken(module, tied or [])))
            self._guarded(lambda: self._split.note(module, shared or []))
            return result

        return _apply

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        known = self._optimizers.setdefault(optimizer, Constructed("", 0))
        known.steps += 1
        if known.steps & (known.steps - 1) == 0:
            self._guarded(lambda: self._look(optimizer))

    def _look(self, optimizer: Any) -> None:
        stack = list(user_stack())
        if not stack:
            return
        modules = modules_named(stack)
        self._add(stale_optimizers.find(optimizer, stack, modules, self._optimizers, self._origins))
        self._add(moved_parameters.find(stack, modules, self._optimizers, self._origins))
        constructed = self._optimizers[optimizer]
        self._add(trained_copies.find(optimizer, stack, self._optimizers, constructed, self._origins))
        self._add(self._split.find(stack))

    def _guarded(self, look: Callable[[], _Seen]) -> _Seen | None:
        # What goes wrong while looking is no business of the program that is looked at.
        with contextlib.suppress(Exception):
            return look()
        return None

    def _add(self, findings: Iterator[Finding]) -> None:
        for finding in findings:
            culprit, location = finding.culprit, finding.location
            key = (finding.cause, culprit.name if culprit else None, location.line if location else None)
            if key not in self._reported:
                self._reported.add(key)
                self._report(finding)
