"""A module's plain tensor that is a moved copy of a parameter which nothing else holds: it never trains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import device_of, instance_dict, tensors_of_module
from samedevice.explaining.made import Made
from samedevice.explaining.mending.registering import leaf_at
from samedevice.explaining.routes import Route, Step
from samedevice.findings import Finding, Fix
from samedevice.texts import say
from samedevice.tracing.origins import OriginTable
from samedevice.tracing.stacks import culprit_of
from samedevice.tracing.stale_optimizers import parameters_of

__all__ = ["find"]

_MOST_STEPS = 3
"""Autograd's nodes between a moved copy and its leaf: the move itself, and a cast or a clone or two."""


def find(
    stack: list[UserFrame], modules: list[Route], optimizers: Iterable[Any], origins: OriginTable
) -> Iterator[Finding]:
    """Such tensors of the modules in reach.

    Args:
        stack: the user's frames, innermost first.
        modules: the models in reach.
        optimizers: what an optimizer holds is trained, however it got there.
        origins: where tensors came from.
    """
    registered = {id(tensor) for route in modules for _, _, tensor in tensors_of_module(route.value)}
    registered |= {id(tensor) for other in list(optimizers) for tensor in parameters_of(other)}
    for route in modules:
        for owner in _with_children(route):
            for key, value in list(instance_dict(owner.value).items()):
                leaf = _moved_leaf(value)
                if leaf is not None and id(leaf) not in registered:
                    yield _finding(stack[0], f"{owner.text}.{key}", value, origins)


def _moved_leaf(value: Any) -> Any:
    """The leaf that `value` is a moved copy of, by its autograd history; None for anything else."""
    if type(value) is not torch.Tensor or value.is_leaf or value.grad_fn is None:
        return None
    node: Any = value.grad_fn
    for _ in range(_MOST_STEPS):
        if "Copy" not in node.name() and "Clone" not in node.name():
            return None
        following = [each for each, _ in node.next_functions if each is not None]
        if len(following) != 1:
            return None
        node = following[0]
        if hasattr(node, "variable"):
            return node.variable
    return None


def _with_children(route: Route) -> Iterator[Route]:
    for path, child in torch.nn.Module.named_modules(route.value):
        steps, module = [], route.value
        for name in path.split(".") if path else ():
            steps.append(Step(module, "submodule", name))
            module = module._modules[name]
        yield Route(route.frame, route.base, route.scope, (*route.steps, *steps), child)


def _finding(frame: UserFrame, name: str, value: torch.Tensor, origins: OriginTable) -> Finding:
    origin = origins.origin_of(value)
    made = Made(origin.file, origin.line) if origin is not None else None
    return Finding(
        code="SD103",
        cause="plain-attribute",
        severity="warning",
        message=say("{name} is a moved copy of a parameter, no parameter itself: no optimizer trains it", name=name),
        location=frame.location,
        culprit=culprit_of(name, made, device_of(value), value),
        reasons=(say("a tensor's `.to()` returns a plain tensor, so the module registers no parameter"),),
        fix=leaf_at(made) or Fix(say("make the parameter of the moved tensor: nn.Parameter(x.to(device))")),
    )
