"""The whole flow at once: model, criterion, batch, optimizer, each moved in turn, then all of it checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import nn

from samedevice import devices
from samedevice.errors import MoveError
from samedevice.findings import Report
from samedevice.placing.check import check
from samedevice.placing.collect import modules_within
from samedevice.placing.inside import tensors_inside
from samedevice.placing.lengths import has_recurrence, keep_lengths
from samedevice.placing.module_tensors import registered_tensors
from samedevice.placing.move_to_device import move_to_device
from samedevice.placing.routes import is_spread
from samedevice.placing.sync_optimizer import sync_optimizer
from samedevice.texts import Text, say, say_number, with_values
from samedevice.trees.path import Path

__all__ = ["Unified", "unify"]


class Unified(NamedTuple):
    """What `unify` returns: `report, batch = samedevice.unify(…)`."""

    report: Report
    """What could not be moved and why, and what was done."""
    batch: Any
    """The batch on the device; the very same object where it was there already."""


def unify(
    device: devices.DeviceLike,
    model: Any = None,
    batch: Any = None,
    optimizer: Any = None,
    criterion: Any = None,
    *,
    multi_device: bool | None = None,
) -> Unified:
    """Put everything that a training step needs on one device.

        report, batch = samedevice.unify("cuda", model=model, batch=batch, optimizer=optimizer, criterion=criterion)
        assert report.ok, report                      # what no `.to()` moves, e.g. model.encoder.pe, and why

    What is registered moves; plain attributes and containers do not, and are reported. A second time there is nothing
    left to move. A model that is on several devices on purpose stays as it is.

    Args:
        device: where to.
        model: a module, or a list, tuple or dict of modules; moved in place, as `Module.to` does.
        batch: nested data of any shape. Lengths stay on the CPU where the model has an RNN, LSTM or GRU.
        optimizer: an optimizer, or a list, tuple or dict of them; its state is moved in place.
        criterion: the loss; moved in place where it is a module.
        multi_device: as for `check`; False also gathers a model that is spread over several devices.

    Returns:
        The report of the check afterwards, with a note for each move, and the moved batch.

    Raises:
        UnknownDevice: `device` names no device.
        UnavailableDevice: this machine does not have it. Nothing was moved.
        MoveError: something could not be moved; it is as it was, and the steps before it are done.
        UsageError: `model` or `optimizer` is something else.
    """
    target = devices.parse(device)
    models = modules_within(model, "model")
    notes = [
        *_move_modules(models, target, multi_device),
        *_move_modules(modules_within(criterion, "criterion"), target),
    ]
    moved = _move_batch(batch, target, list(models.values()))
    if moved is not batch:
        notes.append(say("Moved to {device}: the batch.", device=str(target)))
    if optimizer is not None and (names := sync_optimizer(optimizer)):
        notes.append(
            say_number(
                "Moved to its parameters: {number} tensor of the optimizer.",
                "Moved to its parameters: {number} tensors of the optimizer.",
                len(names),
            )
        )
    report = check(model, moved, optimizer, criterion, device=target, multi_device=multi_device)
    return Unified(replace(report, notes=(*notes, *report.notes)), moved)


def _move_modules(
    modules: dict[str, nn.Module], device: torch.device, multi_device: bool | None = False
) -> Iterator[str]:
    """Move modules in place and say what was moved."""
    for name, module in modules.items():
        left_alone = is_spread(module) if multi_device is None else multi_device
        astray = Counter() if left_alone else _astray(module, name, device)
        if astray:
            try:
                move_to_device(module, device)
            except MoveError as error:
                raise type(error)(_renamed(error.message, name)) from error.__cause__
        for source, number in astray.items():
            yield say_number(
                "Moved to {device}: {name}, {number} tensor from {source}.",
                "Moved to {device}: {name}, {number} tensors from {source}.",
                number,
                device=str(device),
                name=name,
                source=str(source),
            )


def _renamed(message: str, name: str) -> str:
    """What is wrong with a part of `module`, as a part of what the caller gave as `name`."""
    inside = str(message.values["name"]).removeprefix("module") if isinstance(message, Text) else ""
    return with_values(message, name=name + inside)


def _astray(module: nn.Module, name: str, device: torch.device) -> Counter[torch.device]:
    devices_of = (found.tensor.device for found in registered_tensors(module, name))
    return Counter(source for source in devices_of if source != device)


def _move_batch(batch: Any, device: torch.device, models: Sequence[nn.Module]) -> Any:
    moved = move_to_device(batch, device)
    if moved is batch or not has_recurrence(models):
        return moved
    before, after = (list(tensors_inside(data, Path("batch"))) for data in (batch, moved))
    return keep_lengths(before, after, moved)
