"""An optimizer whose tensors get no gradient, since the loss reaches copies of them on another device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import device_of, dtype_of, gradient_of, is_leaf, is_tensor, shape_of
from samedevice.explaining.made import Made
from samedevice.explaining.mending.optimizers import constructed_after
from samedevice.explaining.routes import Route, search_all
from samedevice.findings import Finding, Fix
from samedevice.texts import say
from samedevice.tracing.origins import OriginTable
from samedevice.tracing.stacks import culprit_of, name_of
from samedevice.tracing.stale_optimizers import Constructed, assignment_of, parameters_of

__all__ = ["find"]


def find(
    optimizer: Any, stack: list[UserFrame], optimizers: Iterable[Any], constructed: Constructed, origins: OriginTable
) -> Iterator[Finding]:
    """The fault, if `optimizer`, about to step, shows it: nothing that it holds has a gradient, a copy of it has.

    Args:
        optimizer: its gradients are those of this step.
        stack: the user's frames, innermost first.
        optimizers: all that were constructed while watching.
        constructed: where this one was.
        origins: where tensors came from.
    """
    held = parameters_of(optimizer)
    if not held or any(gradient_of(tensor) is not None for tensor in held):
        return
    trained = {id(tensor) for other in list(optimizers) for tensor in parameters_of(other)}
    for route in search_all(stack, lambda value: is_tensor(value) and id(value) not in trained and _learns(value)):
        original = next((tensor for tensor in held if _is_copy(route.value, tensor, origins)), None)
        if original is not None:
            yield _finding(optimizer, stack, route, original, constructed)
            return


def _learns(tensor: Any) -> bool:
    return is_leaf(tensor) and gradient_of(tensor) is not None


def _is_copy(tensor: Any, original: Any, origins: OriginTable) -> bool:
    """Whether it is on another device, brought there by a move, and of the same kind: half of that is chance."""
    if device_of(tensor) == device_of(original):
        return False
    if (shape_of(tensor), dtype_of(tensor)) != (shape_of(original), dtype_of(original)):
        return False
    origin = origins.origin_of(tensor)
    return origin is not None and origin.event == "moved"


def _finding(optimizer: Any, stack: list[UserFrame], copy: Route, original: Any, constructed: Constructed) -> Finding:
    name = name_of(optimizer, stack, "optimizer")
    assigned = assignment_of(name, stack) or (constructed.file, constructed.line)
    fix = constructed_after(*assigned, copy.base) if name.isidentifier() and not copy.steps else None
    return Finding(
        code="SD202",
        cause="optimizer-stale-params",
        severity="warning",
        message=say(
            "{name} steps a tensor on {device} that gets no gradient; {other}, its copy, does",
            name=name,
            device=device_of(original),
            other=copy.text,
        ),
        location=stack[0].location,
        culprit=culprit_of(name, Made(constructed.file, constructed.line), device_of(original)),
        reasons=(
            say(
                "{name} on {device} has a gradient and no optimizer holds it",
                name=copy.text,
                device=device_of(copy.value),
            ),
        ),
        fix=fix or Fix(say("construct the optimizer after its tensors are where they are to be trained")),
    )
