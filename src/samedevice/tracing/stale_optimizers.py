"""An optimizer that steps parameters which the model does not have any more, while the model's own train nowhere."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from samedevice.explaining.flow import binding_of
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import device_of, gradient_of, instance_dict, is_module, parameters_of_module, shape_of
from samedevice.explaining.made import Made
from samedevice.explaining.mending.optimizers import constructed_after
from samedevice.explaining.operands import find_inside
from samedevice.explaining.routes import Route
from samedevice.findings import Finding, Fix
from samedevice.texts import say
from samedevice.tracing.origins import OriginTable
from samedevice.tracing.stacks import culprit_of, name_of

__all__ = ["Constructed", "assignment_of", "find", "parameters_of"]


class Constructed:
    """Where an optimizer was constructed, and how often it has stepped."""

    def __init__(self, file: str, line: int) -> None:
        self.file, self.line, self.steps = file, line, 0


def find(
    optimizer: Any,
    stack: list[UserFrame],
    modules: list[Route],
    optimizers: Mapping[Any, Constructed],
    origins: OriginTable,
) -> Iterator[Finding]:
    """The fault, if `optimizer`, about to step, shows it.

    Args:
        optimizer: its gradients are those of this step.
        stack: the user's frames, innermost first.
        modules: the models in reach.
        optimizers: all that were constructed while watching.
        origins: where parameters came from.
    """
    held = parameters_of(optimizer)
    everywhere = {id(tensor) for other in list(optimizers) for tensor in parameters_of(other)}
    idle = [tensor for tensor in held if gradient_of(tensor) is None]
    for route in modules:
        own = parameters_of_module(route.value)
        lost = [tensor for tensor in own if id(tensor) not in everywhere and gradient_of(tensor) is not None]
        if lost and (_replaced_in_part(held, idle, own) or _replaced_whole(held, idle, own)):
            yield _finding(optimizer, stack, route, lost[0], optimizers[optimizer], origins)
            return


def parameters_of(optimizer: Any) -> list[Any]:
    """The parameters in all groups of `optimizer`."""
    groups = instance_dict(optimizer).get("param_groups") or ()
    return [tensor for group in groups for tensor in group["params"]]


def _replaced_in_part(held: list[Any], idle: list[Any], own: list[Any]) -> bool:
    """The optimizer holds the model's other parameters, and beside them some that no living module has."""
    mine = {id(tensor) for tensor in own}
    if not any(id(tensor) in mine for tensor in held):
        return False
    orphans = [tensor for tensor in idle if id(tensor) not in mine]
    return bool(orphans) and not _in_a_living_module(orphans)


def _replaced_whole(held: list[Any], idle: list[Any], own: list[Any]) -> bool:
    """Nothing that the optimizer holds got a gradient, and it was made for a model of these very shapes."""
    if not held or len(idle) < len(held):
        return False
    return Counter(map(shape_of, held)) <= Counter(map(shape_of, own))


def _in_a_living_module(tensors: Iterable[Any]) -> bool:
    """Whether any module of the process holds one of them; asked only when everything else speaks for a fault."""
    wanted = {id(tensor) for tensor in tensors}
    for each in gc.get_objects():
        held = instance_dict(each).get("_parameters") if is_module(each) else None
        if isinstance(held, dict) and any(id(tensor) in wanted for tensor in held.values()):
            return True
    return False


def _finding(
    optimizer: Any, stack: list[UserFrame], model: Route, lost: Any, constructed: Constructed, origins: OriginTable
) -> Finding:
    name = name_of(optimizer, stack, "optimizer")
    found = find_inside(model, lost)
    path = found.text if found is not None else model.text
    return Finding(
        code="SD202",
        cause="optimizer-stale-params",
        severity="warning",
        message=say(
            "{name} steps parameters that {other} does not have any more; {path} is in no optimizer",
            name=name,
            other=model.text,
            path=path,
        ),
        location=stack[0].location,
        culprit=culprit_of(name, Made(constructed.file, constructed.line), device_of(lost)),
        reasons=(
            say("{path} has a gradient and no optimizer holds it", path=path),
            say("{name} holds parameters without a gradient that belong to no module in use", name=name),
        ),
        fix=_fix(name, stack, model, lost, constructed, origins),
    )


def _fix(
    name: str, stack: list[UserFrame], model: Route, lost: Any, constructed: Constructed, origins: OriginTable
) -> Fix:
    origin = origins.origin_of(lost)
    replacing = origin.function if origin is not None else None
    fix = None
    if name.isidentifier():
        # The line that says `optimizer = …`, which may call a helper that constructs it.
        assigned = assignment_of(name, stack) or (constructed.file, constructed.line)
        fix = constructed_after(*assigned, model.base, replacing)
    return fix or Fix(say("construct the optimizer after the model has its final parameters"))


def assignment_of(name: str, stack: list[UserFrame]) -> tuple[str, int] | None:
    """The file and line of the assignment to the variable `name` in the innermost frame that has it."""
    for frame in stack:
        binding = binding_of(name, frame) if name in frame.frame.f_locals else None
        if binding is not None:
            return frame.file, binding.line
    return None
