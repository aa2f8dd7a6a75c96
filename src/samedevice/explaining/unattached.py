"""The tensors of a failure that nothing was attached to, as real machines raise it.

The arguments of PyTorch's own innermost functions are still in their frames: `F.linear` says exactly what met. Where
the user's line called the operator directly, its expression is read, and what it names nothing for is told by
elimination from the message.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

from samedevice.explaining.frames import UserFrame, all_frames, variables_of
from samedevice.explaining.live import describe, is_module, is_tensor, same_storage, tensors_of_module
from samedevice.explaining.operands import Seen, find_inside, lending, placed
from samedevice.explaining.reading import is_container, members
from samedevice.explaining.routes import Route, Step, resolve
from samedevice.explaining.syntax import arguments_of, move_calls
from samedevice.messages import Recognised
from samedevice.usercode import is_user_file

__all__ = ["operands_without_fault"]

_NO_TENSORS = (ast.Constant, ast.Slice, ast.Lambda, ast.JoinedStr)


def operands_without_fault(error: BaseException, frame: UserFrame, recognised: Recognised | None) -> list[Seen]:
    """The tensors of the failing operation.

    Args:
        error: as it was caught.
        frame: the innermost frame of the user's own code.
        recognised: the message, taken apart.

    Returns:
        Those of the innermost library function whose arguments are on several devices; else those of the line.
    """
    for library in _library_frames(error):
        seen = list(_arguments(library))
        if len({one.device for one in seen}) > 1:
            return placed(seen, frame)
    seen = _of_line(frame)
    return [*seen, *_eliminated(seen, frame, recognised)]


def _library_frames(error: BaseException) -> list[FrameType]:
    """The library's frames inside the innermost user frame, innermost first."""
    found: list[FrameType] = []
    for each in reversed(all_frames(error)):
        if is_user_file(each.f_code.co_filename):
            break
        found.append(each)
    return found


def _arguments(frame: FrameType) -> Iterator[Seen]:
    code, values = frame.f_code, variables_of(frame).f_locals
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        yield from _tensors(name, values.get(name))


def _tensors(name: str, value: Any) -> Iterator[Seen]:
    if is_tensor(value):
        yield Seen(value, *describe(value), name)
    elif is_container(value):
        for _, key, inner in members(value):
            if is_tensor(inner):
                yield Seen(inner, *describe(inner), f"{name}[{key}]")


def _of_line(frame: UserFrame) -> list[Seen]:
    """The tensors that the running expression names or its callee holds, each storage once."""
    running = frame.running
    if running is None:
        return []
    found: list[Seen] = []
    written = set(map(id, _written_at(running)))
    for _, node in arguments_of(running):
        for leaf in lending(node, frame):
            found.extend(_seen_from(leaf, node))
        if id(node) in written:
            found = [replace(one, argument="indices") if one.node is node else one for one in found]
        found.extend(_in_containers(node, frame))
    for call in [node for node in ast.walk(running) if isinstance(node, ast.Call)]:
        callee = resolve(call.func, frame)
        if callee is not None and is_module(callee.value):
            found.extend(_seen_from(callee, None))
    return _each_once(found)


def _written_at(running: ast.AST) -> Iterator[ast.expr]:
    """The indices of what an assignment writes to."""
    for target in running.targets if isinstance(running, ast.Assign) else ():
        if isinstance(target, ast.Subscript):
            yield from (node for _, node in arguments_of(target) if node is not target.value)


def _in_containers(node: ast.expr, frame: UserFrame) -> Iterator[Seen]:
    """The tensors of a list or dict that the argument names: what `torch.cat(rows)` and comprehensions read."""
    if any(True for _ in move_calls(node)):
        return  # what went in is elsewhere than what comes out
    for inner in ast.walk(node):
        route = resolve(inner, frame) if isinstance(inner, ast.Name | ast.Attribute | ast.Subscript) else None
        if route is None or not is_container(route.value):
            continue
        for kind, key, value in members(route.value):
            if is_tensor(value):
                step = Step(route.value, kind, key)
                way = Route(frame, route.base, route.scope, (*route.steps, step), value)
                yield Seen(value, *describe(value), None, inner if inner is node else None, way)


def _eliminated(seen: list[Seen], frame: UserFrame, recognised: Recognised | None) -> Iterator[Seen]:
    """The one argument without a name is on the one device of the message that no other argument is on."""
    running = frame.running
    missing = set(recognised.devices if recognised is not None else ()) - {one.device for one in seen}
    if running is None or len(missing) != 1:
        return
    named = {id(one.node) for one in seen}
    nodes = [node for _, node in arguments_of(running) if not isinstance(node, _NO_TENSORS)]
    unknown = [node for node in nodes if id(node) not in named and resolve(node, frame) is None]
    if len(unknown) == 1:
        yield Seen(None, missing.pop(), (), "", None, unknown[0])


def _seen_from(leaf: Route, node: ast.expr | None) -> list[Seen]:
    if is_tensor(leaf.value):
        return [Seen(leaf.value, *describe(leaf.value), None, node, leaf)]
    result: dict[str, Seen] = {}
    for path, kind, tensor in tensors_of_module(leaf.value):
        device, shape, dtype = describe(tensor)
        step = _steps_to(leaf, path, kind, tensor)
        result.setdefault(device, Seen(tensor, device, shape, dtype, None, node, step))
    return list(result.values())


def _steps_to(leaf: Route, path: str, kind: str, tensor: Any) -> Route:
    return find_inside(leaf, tensor) or Route(
        leaf.frame, leaf.base, leaf.scope, (*leaf.steps, Step(leaf.value, kind, path)), tensor
    )


def _each_once(found: list[Seen]) -> list[Seen]:
    kept: list[Seen] = []
    for one in found:
        if not any(same_storage(one.tensor, other.tensor) for other in kept):
            kept.append(one)
    return kept
