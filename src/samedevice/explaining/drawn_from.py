"""Distributions of torch that a module keeps: which one the wrong tensor is of, or was drawn from."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import is_module, module_of_class
from samedevice.explaining.made import Made
from samedevice.explaining.routes import Route, Step, resolve

__all__ = ["distribution_of", "drawn_from"]


def distribution_of(route: Route | None) -> tuple[Step, object] | None:
    """The attribute on the way that holds a distribution: `self.prior` of `self.prior.loc`; with the distribution."""
    steps = route.steps if route is not None else ()
    for step, following in itertools.pairwise(steps):
        if step.kind == "attribute" and is_module(step.owner) and _is_distribution(following.owner):
            return step, following.owner
    return None


def drawn_from(made: Made | None, frames: list[UserFrame]) -> tuple[Route, Step, object] | None:
    """The distribution that the line `made` draws from: `self.base` of `z = self.base.sample((n,))`."""
    if made is None or made.statement is None:
        return None
    for frame in reversed(frames):
        if (frame.file, frame.function) != (made.file, made.function):
            continue
        for route in _routes(made.statement, frame):
            step = route.steps[-1] if route.steps else None
            kept = step is not None and step.kind == "attribute" and is_module(step.owner)
            if step is not None and kept and _is_distribution(route.value):
                return route, step, route.value
    return None


def _routes(statement: ast.stmt, frame: UserFrame) -> Iterator[Route]:
    for node in ast.walk(statement):
        route = resolve(node, frame) if isinstance(node, ast.Attribute) else None
        if route is not None:
            yield route


def _is_distribution(value: object) -> bool:
    return module_of_class(type(value)).startswith("torch.distributions")
