"""Is everything on the device where it should be? `check` looks at live objects and changes nothing.

Three steps: `collect.py` finds what lives where, `judge.py` says what is wrong with that, `attribute_source.py` finds
the lines. None of them calls code of the objects' classes. What was left alone on purpose is in the report's notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from samedevice import devices
from samedevice.findings import Finding, Placement, Report
from samedevice.placing.attribute_source import with_source
from samedevice.placing.blame import joins_any, listed
from samedevice.placing.collect import Collection, collect
from samedevice.placing.judge import Flow, is_on_purpose, judge
from samedevice.placing.routes import is_dispatched, moves_inputs, starts_from
from samedevice.texts import say, say_number

__all__ = ["check"]


def check(
    model: Any = None,
    batch: Any = None,
    optimizer: Any = None,
    criterion: Any = None,
    *,
    device: devices.DeviceLike | None = None,
    multi_device: bool | None = None,
) -> Report:
    """Look for whatever is, or will be, on the wrong device in the flow model -> inputs -> optimizer.

        report = samedevice.check(model=model, batch=batch, optimizer=optimizer)
        if not report.ok:
            print(report)                             # model.encoder.pe is on cpu, … Mend: self.register_buffer(…)

    Args:
        model: a module, or a list, tuple or dict of modules.
        batch: nested data of any shape.
        optimizer: an optimizer, or a list, tuple or dict of them.
        criterion: the loss, where it is a module.
        device: where everything should be. Without it, the model is believed to be in the right place, and what will
            stay on the CPU when the model moves is reported too.
        multi_device: whether the model is on several devices on purpose. Without it, a device map or parameters on
            several accelerators are taken as a purpose, a split between the CPU and one accelerator as a fault.

    Returns:
        The report: findings in the order of the flow, every placement, and notes.

    Raises:
        UnknownDevice: `device` names no device.
        UsageError: `model` or `optimizer` is something else.
    """
    wanted = None if device is None else str(devices.complete(device))
    # Even `tensor.device` calls a tensor subclass's `__torch_function__`, which is the user's code.
    with torch._C.DisableTorchFunctionSubclass():
        found = collect(model, batch, optimizer, criterion)
    flow = _flow(found, wanted, multi_device)
    findings = tuple(with_source(finding, found.holders) for finding in judge(found.placements, flow))
    return Report(
        findings=findings,
        outcome="finding" if findings else "ok",
        placements=tuple(found.placements),
        notes=tuple(_notes(found, flow, findings)),
    )


def _flow(found: Collection, device: str | None, multi_device: bool | None) -> Flow:
    models = found.models.values()
    start = next((start for start in map(starts_from, models) if start is not None), None)
    if multi_device is None and any(map(is_dispatched, models)):
        multi_device = True
    return Flow(
        device=device,
        multi_device=multi_device,
        moves_inputs=any(map(moves_inputs, models)),
        models=tuple(found.models) or ("model",),
        starts_from=None if start is None else str(start),
    )


def _notes(found: Collection, flow: Flow, findings: Sequence[Finding]) -> Iterator[str]:
    model = [placement for placement in found.placements if placement.role == "model"]
    if is_on_purpose(model, flow):
        on = listed(list(dict.fromkeys(placement.device for placement in model if not placement.holder)), most=8)
        yield say("The model is on several devices ({devices}); that is taken as on purpose.", devices=on)
    if flow.moves_inputs:
        yield say("The model moves its inputs itself, so the batch may be anywhere.")
    lengths = [placement.path for placement in found.placements if placement.kind == "length"]
    if lengths:
        yield say("{names} may stay on the CPU: `pack_padded_sequence` wants lengths there.", names=listed(lengths))
    blamed = {operand.name for finding in findings for operand in finding.operands}
    quiet = [p for p in found.placements if p.holder and p.path not in blamed]
    yield from _unregistered([p for p in quiet if not joins_any(p)], [p for p in quiet if joins_any(p)])


def _unregistered(in_place: Sequence[Placement], small: Sequence[Placement]) -> Iterator[str]:
    if in_place:
        names = list(dict.fromkeys(placement.holder or "" for placement in in_place))
        yield say_number(
            "{names} will not follow a later `.to()`, and is in place now.",
            "{names} will not follow a later `.to()`, and are in place now.",
            len(names),
            names=listed(names),
        )
    if small:
        names = [placement.path for placement in small]
        yield say("{names}: 0-dim on the CPU, which pointwise operations take beside any device.", names=listed(names))
