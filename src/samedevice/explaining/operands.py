"""Which tensors took part in the failing operation, and which expression of the failing line is each.

With a `Fault` attached the tensors are known; `unattached` finds those of a failure without one.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import (
    device_of,
    is_module,
    is_tensor,
    is_torch_device,
    same_storage,
    storage_key,
    tensors_of_module,
)
from samedevice.explaining.making import makes_elsewhere, written_shape
from samedevice.explaining.reading import is_container, members
from samedevice.explaining.routes import Route, Step, resolve, search, value_of
from samedevice.explaining.syntax import arguments_of, call_name, is_move, lenders, moved_device, undressed
from samedevice.faults import Fault

__all__ = ["Seen", "device_of_route", "find_inside", "leaves", "lending", "moved_to", "operands_of_fault", "placed"]

_Argument: TypeAlias = "tuple[str | None, ast.expr]"
"""Keyword or None, and expression."""
_Leaves: TypeAlias = "Callable[[ast.AST, UserFrame], Iterator[Route]]"
_DEEPEST_INSIDE = 8
_MOST_INSIDE = 8_000
_REGISTERED = ("submodule", "parameter", "buffer")


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One tensor of the failing operation, as found."""

    tensor: Any
    device: str
    shape: tuple[int, ...]
    dtype: str
    argument: str | None = None
    node: ast.expr | None = None
    """The expression of the failing line that is this tensor, or that it was computed from."""
    route: Route | None = None
    """The way to it, where it is no expression of the line: a parameter of the module called there."""

    @property
    def name(self) -> str:
        """What to call it; "" where nothing in the user's code does."""
        if self.route is not None:
            return self.route.text
        return ""


def operands_of_fault(fault: Fault, frame: UserFrame | None, called: Sequence[Any] = ()) -> list[Seen]:
    """The tensors of the failing operation, as the code that refused it knew them.

    Args:
        fault: what was attached to the exception.
        frame: the innermost frame of the user's own code.
        called: the modules that its running line called, whose own tensors are none of the call's arguments.

    Returns:
        In the order of the operation's arguments; each with its expression or route where one was found.
    """
    seen = [Seen(ref.tensor(), ref.device, ref.shape, ref.dtype, ref.argument) for ref in fault.operands]
    return placed(seen, frame, called) if frame is not None else seen


def leaves(node: ast.AST, frame: UserFrame, inner: _Leaves | None = None) -> Iterator[Route]:
    """Routes to the tensors and modules that the expression `node` reads; of a module's call, the module alone.

    Args:
        node: an expression of the source.
        frame: the frame whose variables it reads.
        inner: how its parts are read; as it is itself unless told.
    """
    route = resolve(node, frame)
    if route is not None:
        if is_tensor(route.value) or is_module(route.value):
            yield route
        return
    if isinstance(node, ast.Call):
        callee = resolve(node.func, frame)
        if callee is not None and is_module(callee.value) and device_of_route(callee):
            yield callee
            return
    for child in lenders(node):
        yield from (inner or leaves)(child, frame)


def lending(node: ast.AST, frame: UserFrame) -> Iterator[Route]:
    """`leaves`, without those that a move in the expression takes elsewhere: `model(x).cpu()` is not on x's device."""
    if not isinstance(node, ast.Call) or resolve(node, frame) is not None:
        yield from leaves(node, frame, lending)
        return
    if not is_move(node):
        yield from leaves(node, frame, lending)
        return
    target = moved_to(node, frame)
    for leaf in leaves(node.func, frame):
        if target and device_of_route(leaf).startswith(target):
            yield leaf


def moved_to(move: ast.Call, frame: UserFrame) -> str:
    """The device of a move, or its kind alone; "" where it is unknown without running code."""
    name = move.func.attr if isinstance(move.func, ast.Attribute) else ""
    argument = moved_device(move)
    if argument is None:
        return name if name != "to" else ""
    if isinstance(argument, ast.Call) and call_name(argument) == "device" and 0 < len(argument.args) < 3:
        kind, *index = (value_of(part, frame) for part in argument.args)
        return ":".join(map(str, (kind, *index))) if type(kind) is str and all(type(i) is int for i in index) else ""
    value = value_of(argument, frame)
    if type(value) is int:
        return f"{'cuda' if name == 'to' else name}:{value}"
    return value if type(value) is str else str(value) if is_torch_device(value) else ""


def device_of_route(route: Route) -> str:
    """Where the tensor lives, or the first parameter of the module; "" where neither is there."""
    if is_tensor(route.value):
        return device_of(route.value)
    return next((device_of(tensor) for _, _, tensor in tensors_of_module(route.value)), "")


def find_inside(start: Route, tensor: Any) -> Route | None:
    """The shortest route on from `start` to `tensor` or a view of it; of a module's, one through what it registers."""
    if is_module(start.value) and (registered := _find_inside(start, tensor, _REGISTERED)) is not None:
        return registered
    return _find_inside(start, tensor, None)


def _find_inside(start: Route, tensor: Any, kinds: tuple[str, ...] | None) -> Route | None:
    seen: set[int] = set()
    queue = deque([start])
    while queue and len(seen) < _MOST_INSIDE:
        route = queue.popleft()
        if is_tensor(route.value) and same_storage(route.value, tensor):
            return route
        if id(route.value) in seen or route.depth - start.depth > _DEEPEST_INSIDE:
            continue
        seen.add(id(route.value))
        for kind, key, value in members(route.value):
            if kinds is not None and kind not in kinds:
                continue
            step = Step(route.value, kind, key)
            queue.append(Route(route.frame, route.base, route.scope, (*route.steps, step), value))
    return None


def placed(seen: list[Seen], frame: UserFrame, called: Sequence[Any] = ()) -> list[Seen]:
    """`seen`, each with the expression of the running line that it is, or the way to it from there.

    Args:
        seen: the tensors.
        frame: the innermost frame of the user's own code.
        called: the modules that its running line called.
    """
    running = frame.running
    arguments = arguments_of(running) if running is not None else []
    if called and (made := _called_result(running)) is not None:
        # `nn.Linear(2, 2).cuda()(x)`: what made the module that is called here is none of its arguments.
        inner = {id(node) for _, node in arguments_of(made)}
        arguments = [pair for pair in arguments if id(pair[1]) not in inner]
    used: set[int] = set()
    placed = [_direct(one, arguments, used, frame) for one in seen]
    placed = [one if one.node is not None else _in_callee(one, running, frame) for one in placed]
    own = {storage_key(tensor) for module in called for _, _, tensor in tensors_of_module(module)} - {None}
    placed = _leftover(placed, arguments, used, frame, own)
    return [one if one.node is not None or one.route is not None else _anywhere(one, frame) for one in placed]


def _called_result(running: ast.AST | None) -> ast.Call | None:
    """The call whose result is called by the running statement or expression."""
    while isinstance(running, ast.Expr | ast.Return | ast.Assign | ast.AnnAssign | ast.Await):
        running = running.value
    return running.func if isinstance(running, ast.Call) and isinstance(running.func, ast.Call) else None


def _direct(one: Seen, arguments: list[_Argument], used: set[int], frame: UserFrame) -> Seen:
    """The argument that is this tensor, then one that holds it, then one that a view of it was taken from."""
    if one.tensor is None:
        return one
    fallback: Seen | None = None
    for _, node in arguments:
        route = resolve(node, frame)
        if route is not None and is_tensor(route.value) and same_storage(route.value, one.tensor):
            if route.value is one.tensor or id(node) not in used:
                used.add(id(node))
                return replace(one, node=node, route=route)
        elif route is not None and not is_module(route.value) and fallback is None:
            inside = find_inside(route, one.tensor) if is_container(route.value) else None
            fallback = replace(one, node=node, route=inside) if inside is not None else None
        elif route is None and any(same_storage(leaf.value, one.tensor) for leaf in leaves(node, frame)):
            used.add(id(node))
            return replace(one, node=node)
    return fallback or one


def _in_callee(one: Seen, running: ast.AST | None, frame: UserFrame) -> Seen:
    """The tensor inside the module, optimizer or object whose method or call is running."""
    if one.tensor is None:
        return one
    for call in [node for node in ast.walk(running) if isinstance(node, ast.Call)] if running is not None else []:
        for callee in (call.func, call.func.value if isinstance(call.func, ast.Attribute) else None):
            start = resolve(callee, frame) if callee is not None else None
            inside = find_inside(start, one.tensor) if start is not None and not is_tensor(start.value) else None
            if inside is not None:
                return replace(one, route=inside)
    return one


def _leftover(
    placed: list[Seen], arguments: list[_Argument], used: set[int], frame: UserFrame, own: set[int | None]
) -> list[Seen]:
    """Pairs the tensors that nothing names with the expressions that nothing explains, in order; not a layer's own."""
    unknown = [(word, node) for word, node in arguments if id(node) not in used and _may_be_tensor(node, frame)]
    known = [(word, node) for word, node in arguments if id(node) not in used and _is_tensor(node, frame)]
    # What the library made of a known tensor (a float mask of a bool one) comes last: nothing ties it but the device.
    free = [*unknown, *known]
    result = []
    for one in placed:
        nameless = one.node is None and one.route is None
        choice = _choice(one, free, frame) if nameless and not _is_among(one, own) else None
        if choice is not None:
            free.remove(choice)
        result.append(one if choice is None else replace(one, node=choice[1]))
    return result


def _is_among(one: Seen, own: set[int | None]) -> bool:
    return bool(own) and one.tensor is not None and storage_key(one.tensor) in own


def _choice(one: Seen, free: list[_Argument], frame: UserFrame) -> _Argument | None:
    named = next((pair for pair in free if pair[0] is not None and pair[0] == one.argument), None)
    return named or next((pair for pair in free if _could_be(pair[1], one, frame)), None)


def _is_tensor(node: ast.expr, frame: UserFrame) -> bool:
    route = resolve(node, frame)
    return route is not None and is_tensor(route.value)


def _could_be(node: ast.expr, one: Seen, frame: UserFrame) -> bool:
    if isinstance(node, ast.Call) and is_move(node) and (target := moved_to(node, frame)):
        return one.device.startswith(target)
    if makes_elsewhere(undressed(node), one.device, frame.source) or written_shape(node) not in (None, one.shape):
        return False
    devices = {device for leaf in lending(node, frame) for device in _devices_of(leaf)}
    return not devices or one.device in devices


def _devices_of(leaf: Route) -> set[str]:
    """Where the tensor is, or any parameter of the module: what one in parts returns may be on each of its devices."""
    if is_tensor(leaf.value):
        return {device_of(leaf.value)}
    return {device_of(tensor) for _, _, tensor in tensors_of_module(leaf.value)} or {""}


def _may_be_tensor(node: ast.expr, frame: UserFrame) -> bool:
    if isinstance(node, ast.Constant | ast.Slice | ast.Lambda | ast.JoinedStr):
        return False
    return resolve(node, frame) is None


def _anywhere(one: Seen, frame: UserFrame) -> Seen:
    if one.tensor is None:
        return one
    tensor = one.tensor
    found = next(search(frame, lambda value: is_tensor(value) and same_storage(value, tensor)), None)
    return replace(one, route=found)
