"""Two parameters over the same values, which a move copied one by one: from then on they train apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import torch

from samedevice.explaining.flow import Suspect
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import device_of, name_of_class, storage_key, tensors_of_module
from samedevice.explaining.made import Made
from samedevice.explaining.routes import Route, Step
from samedevice.explaining.where_made import in_source
from samedevice.findings import Finding, Fix
from samedevice.texts import say
from samedevice.tracing.stacks import culprit_of, name_of, user_stack

__all__ = ["Tie", "broken", "ties_in", "where_tied"]

Tie: TypeAlias = "tuple[tuple[str, Any], tuple[str, Any]]"
"""Path and parameter, twice."""


def ties_in(module: Any) -> list[Tie]:
    """Pairs of different parameters below `module` that are the same values: same memory, same shape.

    Parameters that are parts of one flat buffer (an RNN's on CUDA, sharded ones) share a storage and are no ties.
    """
    first: dict[tuple[Any, ...], tuple[str, Any]] = {}
    pairs = []
    for path, kind, tensor in tensors_of_module(module):
        # Below `__torch_function__`: a lazy parameter raises at nearly every question, and a subclass may do anything.
        with torch._C.DisableTorchFunctionSubclass():
            if kind != "parameter" or torch.Tensor.numel(tensor) == 0 or tensor.layout is not torch.strided:
                continue
            key = (storage_key(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
        known = first.setdefault(key, (path, tensor))
        if known[1] is not tensor and key[0] is not None:
            pairs.append((known, (path, tensor)))
    return pairs


def broken(module: Any, ties: list[Tie]) -> Iterator[Finding]:
    """The ties that are none any more, though both sides are on one device.

    Args:
        module: what has been moved.
        ties: what `ties_in` gave before.
    """
    for first, second in ties:
        if storage_key(first[1]) != storage_key(second[1]) and device_of(first[1]) == device_of(second[1]):
            stack = list(user_stack())
            if stack:
                yield _finding(module, first, second, stack)


def _finding(module: Any, first: tuple[str, Any], second: tuple[str, Any], stack: list[UserFrame]) -> Finding:
    root = name_of(module, stack[:1], name_of_class(type(module)))
    names = sorted((f"{root}.{first[0]}", f"{root}.{second[0]}"))
    made = where_tied(module, (first[0], second[0]), stack[0])
    return Finding(
        code="SD900",
        cause="other",
        severity="warning",
        message=say(
            "the move made two copies of the values that {name} and {other} shared", name=names[0], other=names[1]
        ),
        location=stack[0].location,
        culprit=culprit_of(names[0], made, device_of(first[1]), first[1]),
        reasons=(
            say(
                "two Parameter objects over one storage are moved one by one; only one and the same "
                "Parameter stays tied"
            ),
        ),
        fix=Fix(say("share the Parameter itself: {name} = {other}", name=names[0], other=names[1])),
    )


def where_tied(module: Any, paths: tuple[str, str], frame: UserFrame) -> Made | None:
    """Where the class ties the two: the later of the assignments of the two submodules."""
    found = []
    for path in paths:
        step = Step(module, "submodule", path.partition(".")[0])
        route = Route(frame, "self", "local", (step,), None)
        made = in_source(Suspect(route.text, frame, None, "", route))
        found.extend([made] if made is not None else [])
    return max(found, key=lambda made: made.line, default=None)
