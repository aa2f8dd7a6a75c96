"""What is in the wrong place where it is no operand: a generator, an optimizer, a wrapped model, a returned gradient.

Some refusals come from Python code or from autograd and name no tensor of the failing line; the message then says
what to look for there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

from samedevice.explaining.flow import Suspect, follow_route
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import (
    device_of,
    instance_dict,
    is_generator,
    is_leaf,
    is_module,
    is_optimizer,
    is_parameter,
    is_tensor,
    name_of_class,
    requires_grad,
)
from samedevice.explaining.reading import is_container, members
from samedevice.explaining.routes import Route, Step, resolve, search, search_all
from samedevice.explaining.sources import read_source
from samedevice.explaining.syntax import Binding, arguments_of
from samedevice.messages import Recognised

__all__ = ["special_suspect"]


def special_suspect(recognised: Recognised | None, frames: list[UserFrame]) -> Suspect | None:
    """The thing in the wrong place that the message's kind points at; None for kinds that name operands.

    Args:
        recognised: the message, taken apart.
        frames: the user's frames, outermost first.
    """
    finder = _FINDERS.get(recognised.kind) if recognised is not None else None
    if finder is None or recognised is None or not frames:
        return None
    return finder(recognised, frames)


def _generator(recognised: Recognised, frames: list[UserFrame]) -> Suspect | None:
    return _named(frames, is_generator)


def _optimizer(recognised: Recognised, frames: list[UserFrame]) -> Suspect | None:
    return _named(frames, is_optimizer)


def _wrapped_model(recognised: Recognised, frames: list[UserFrame]) -> Suspect | None:
    return _named(frames, lambda value: is_module(value) and name_of_class(type(value)).endswith("DataParallel"))


def _non_leaf(recognised: Recognised, frames: list[UserFrame]) -> Suspect | None:
    return _named(frames, lambda value: is_tensor(value) and requires_grad(value) and not is_leaf(value))


def _step_state(recognised: Recognised, frames: list[UserFrame]) -> Suspect | None:
    """The `step` of the first parameter: state on the CPU that the options want on the device."""
    found = _named(frames, is_optimizer)
    if found is None or found.route is None:
        return found
    state = instance_dict(found.value).get("state")
    for _, parameter, entry in members(state):
        for _, key, value in members(entry):
            if key == "step" and is_tensor(value):
                steps = (Step(found.value, "attribute", "state"), Step(state, "item", parameter))
                route = found.route
                longer = Route(
                    route.frame, route.base, route.scope, (*route.steps, *steps, Step(entry, "item", "step")), value
                )
                return Suspect(longer.text, found.frame, value, device_of(value), longer, aliases=found.aliases)
    return found


def _assigned_gradient(recognised: Recognised, frames: list[UserFrame]) -> Suspect | None:
    frame = frames[-1]
    statement = frame.statement
    if not isinstance(statement, ast.Assign):
        return None
    route = resolve(statement.value, frame)
    if route is None:
        text = frame.source.text_of(statement.value)
        return Suspect(text, frame, None, recognised.values.get("grad_device", ""), None, statement.value)
    return Suspect(route.text, frame, route.value, device_of(route.value), route, binding=_at(statement))


def _at(statement: ast.Assign) -> Binding:
    return Binding(statement, statement.lineno, statement.value)


def _returned_gradient(recognised: Recognised, frames: list[UserFrame]) -> Suspect | None:
    """The value that a custom `autograd.Function` returned from its `backward`."""
    name = re.sub(r"Backward\d*$", "", recognised.values.get("node_function", ""))
    index = int(recognised.values.get("index", "0"))
    for frame in reversed(frames):
        definition = read_source(frame.file).class_named(name)
        for method in definition.body if definition is not None else ():
            if isinstance(method, ast.FunctionDef) and method.name == "backward":
                found = _returned(method, index)
                if found is not None:
                    text = frame.source.text_of(_innermost_name(found))
                    device = recognised.values.get("grad_device", "")
                    return Suspect(text, frame, None, device, None, found)
    return None


def _returned(method: ast.FunctionDef, index: int) -> ast.expr | None:
    returns = [node for node in ast.walk(method) if isinstance(node, ast.Return) and node.value is not None]
    if not returns or returns[-1].value is None:
        return None
    value = returns[-1].value
    if isinstance(value, ast.Tuple):
        return value.elts[index] if index < len(value.elts) else None
    return value


def _innermost_name(node: ast.expr) -> ast.expr:
    """The variable that an expression dresses up: `torch.from_numpy(grad.astype(…))` gives `grad`."""
    names = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    called = {id(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call)}
    roots = {
        id(_root(inner.func)) for inner in ast.walk(node) if isinstance(inner, ast.Call) and _is_library(inner.func)
    }
    plain = [name for name in names if id(name) not in called and id(name) not in roots]
    return plain[0] if len({name.id for name in plain}) == 1 else node


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _is_library(function: ast.expr) -> bool:
    root = _root(function)
    return isinstance(root, ast.Name) and root.id in ("torch", "np", "numpy", "F", "nn")


def _unregistered(recognised: Recognised, frames: list[UserFrame]) -> Suspect | None:
    """A module or parameter that a module keeps in a plain container: the optimizer was given nothing, since of it."""
    for route in search_all(reversed(frames), is_module):
        for kind, key, value in members(route.value):
            if kind != "attribute" or not is_container(value):
                continue
            held = Route(route.frame, route.base, route.scope, (*route.steps, Step(route.value, kind, key)), value)
            for step_kind, step_key, inner in members(value):
                if is_module(inner) or is_parameter(inner):
                    steps = (*held.steps, Step(value, step_kind, step_key))
                    way = Route(route.frame, route.base, route.scope, steps, inner)
                    return Suspect(held.text, route.frame, inner, "", way)
    return None


def _load(recognised: Recognised, frames: list[UserFrame]) -> Suspect | None:
    frame = frames[-1]
    running = frame.running
    if running is None:
        return None
    return Suspect(frame.source.text_of(running), frame, None, "", None, running)


def _named(frames: list[UserFrame], wanted: Callable[[Any], bool]) -> Suspect | None:
    """The first thing of that sort among what the running lines name, innermost line first; then among variables."""
    for depth in range(len(frames) - 1, -1, -1):
        for route in _on_line(frames[depth]):
            if wanted(route.value):
                return follow_route(route, frames, depth)
            inside = next((value for _, _, value in members(route.value) if wanted(value)), None)
            if inside is not None and is_container(route.value):
                return follow_route(_into(route, inside), frames, depth)
    for depth in range(len(frames) - 1, -1, -1):
        route_found = next(search(frames[depth], wanted), None)
        if route_found is not None:
            return follow_route(route_found, frames, depth)
    return None


def _into(route: Route, inside: Any) -> Route:
    for kind, key, value in members(route.value):
        if value is inside:
            return Route(route.frame, route.base, route.scope, (*route.steps, Step(route.value, kind, key)), value)
    return route


def _on_line(frame: UserFrame) -> Iterator[Route]:
    running = frame.running
    if running is None:
        return
    nodes = [node for _, node in arguments_of(running)]
    if isinstance(running, ast.Call):
        nodes.append(running.func)
    for part in [*nodes, *(inner for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.expr))]:
        route = resolve(part, frame)
        if route is not None:
            yield route


_FINDERS: dict[str, Callable[[Recognised, list[UserFrame]], Suspect | None]] = {
    "generator": _generator,
    "no-inf-checks": _optimizer,
    "empty-optimizer": _unregistered,
    "capturable": _step_state,
    "data-parallel": _wrapped_model,
    "non-leaf": _non_leaf,
    "assigned-gradient": _assigned_gradient,
    "assigned-gradient-index": _assigned_gradient,
    "invalid-gradient": _returned_gradient,
    "load-without-cuda": _load,
    "load-bad-index": _load,
    "load-unknown-tag": _load,
}
