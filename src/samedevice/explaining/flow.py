"""Follows a tensor back from the failing line to the place where it came into the user's hands.

`x * cos` fails; `cos` was unpacked from the parameter `rotary`, which the caller passed as `kwargs["rotary"]`, which
a line of the caller built: that is the name and the line that help. Each hop is checked against the live objects, so
a wrong turn ends the walk instead of misleading it.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any, TypeAlias

from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import (
    device_of,
    instance_dict,
    is_generator,
    is_module,
    is_tensor,
    module_of_class,
    name_of_class,
    same_storage,
    shape_of,
)
from samedevice.explaining.operands import Seen, device_of_route, find_inside, leaves, lending
from samedevice.explaining.reading import MISSING, item, members
from samedevice.explaining.routes import Route, Step, resolve, search
from samedevice.explaining.sources import Function
from samedevice.explaining.syntax import Binding, arguments_of, bindings_of, undressed

__all__ = ["Suspect", "binding_of", "follow", "follow_route"]

_Argument: TypeAlias = "tuple[str | None, ast.expr]"
"""Keyword or None, and expression."""
_MOST_HOPS = 24


@dataclass(frozen=True, slots=True, eq=False)
class Suspect:
    """Something in the wrong place, by the name and in the frame where the walk back ended."""

    name: str
    frame: UserFrame
    value: Any
    """The tensor, module, generator or optimizer; None where only its expression is known."""
    device: str
    route: Route | None = None
    node: ast.AST | None = None
    """Where no route leads to it: the expression that makes it."""
    binding: Binding | None = None
    """The statement of `frame` that gave the variable its value."""
    aliases: tuple[tuple[UserFrame, str], ...] = ()
    """What it was called on the way, innermost first."""
    maker: tuple[UserFrame, int] | None = None
    """The frame and line whose call passed it on as an expression that only running it would evaluate."""

    @property
    def holder(self) -> Step | None:
        """Who holds it, and how; None for a plain variable."""
        return self.route.holder if self.route is not None else None


def follow(seen: Seen, frames: list[UserFrame]) -> Suspect | None:
    """From an operand at the innermost of `frames` to the `Suspect` behind it; None where nothing names it."""
    if not frames:
        return None
    depth = len(frames) - 1
    if seen.route is not None:
        return follow_route(seen.route, frames, depth, seen)
    if seen.node is None:
        return None
    return _follow_expression(seen.node, frames, depth, seen)


def follow_route(route: Route, frames: list[UserFrame], depth: int, seen: Seen | None = None) -> Suspect:
    """From a known route in `frames[depth]` outwards and back."""
    walk = _Walk(frames, depth, route, seen)
    for _ in range(_MOST_HOPS):
        if not walk.hop():
            break
    return walk.suspect()


def binding_of(name: str, frame: UserFrame, before: int | None = None) -> Binding | None:
    """The last binding of `name` in the function of `frame` before its running line; a comprehension's own first."""
    scope: Function | ast.Module = frame.definition or frame.source.tree
    limit = frame.line if before is None else before
    found = bindings_of(name, scope)
    statement = frame.statement
    here = [one for one in found if isinstance(one.node, ast.comprehension) and _covers(statement, one.line)]
    if here:
        return here[-1]
    earlier = [one for one in found if one.line < limit or (one.loop and one.line <= limit)]
    earlier = [one for one in earlier if one.node is not statement or one.loop]
    if earlier:
        return earlier[-1]
    return next((one for one in reversed(found) if one.node is not statement), None)


def _follow_expression(node: ast.expr, frames: list[UserFrame], depth: int, seen: Seen | None) -> Suspect | None:
    """From an expression that only running it would evaluate: to the leaf that lent it its device."""
    frame = frames[depth]
    device = seen.device if seen is not None else ""
    tensor = seen.tensor if seen is not None else None
    inner = undressed(node)
    found = list(leaves(node, frame))
    shared = [
        leaf for leaf in found if tensor is not None and is_tensor(leaf.value) and same_storage(leaf.value, tensor)
    ]
    lent = [leaf for leaf in lending(node, frame) if device and device_of_route(leaf) == device]
    # A tensor of one element may follow the others wherever they are, so it lends its device last.
    lent.sort(key=lambda leaf: is_tensor(leaf.value) and not shape_of(leaf.value))
    best = next(iter(shared or lent), None)
    if best is None:
        inside = _result_elsewhere(frame, tensor)
        if inside is not None:
            return replace(follow_route(inside, frames, depth, seen), node=node)
        return Suspect(frame.source.text_of(inner), frame, tensor, device, None, inner)
    return replace(follow_route(best, frames, depth, seen), node=node)


def _result_elsewhere(frame: UserFrame, tensor: Any) -> Route | None:
    """What a helper returned may be kept in an attribute or a table: `self.boxes(…)` gives `self.templates`."""
    if tensor is None:
        return None
    return next(search(frame, lambda value: is_tensor(value) and same_storage(value, tensor)), None)


class _Walk:
    """The walk's state: a route, the frame that it belongs to, and what it was called before."""

    def __init__(self, frames: list[UserFrame], depth: int, route: Route, seen: Seen | None) -> None:
        self.frames, self.depth, self.route = frames, depth, route
        self.device = (seen.device if seen is not None else "") or _device(route.value)
        self.aliases: list[tuple[UserFrame, str]] = []
        self.binding: Binding | None = None
        self.node: ast.AST | None = None
        self.maker: tuple[UserFrame, int] | None = None
        self.visited: set[tuple[int, str]] = set()

    @property
    def frame(self) -> UserFrame:
        return self.frames[self.depth]

    def hop(self) -> bool:
        """One step back, if there is one; False at the end of the walk."""
        key = (self.depth, self.route.text)
        if key in self.visited or self.route.starts_at_self:
            return False
        self.visited.add(key)
        self.binding = None
        if self.route.scope == "closure":
            return self._to_enclosing()
        if self.route.scope == "global":
            return False
        binding = binding_of(self.route.base, self.frame)
        if self.route.scope == "parameter" and (binding is None or binding.line > self.frame.line):
            return self._to_caller()
        self.binding = binding
        return binding is not None and self._to_source(binding)

    def suspect(self) -> Suspect:
        """Where the walk ended."""
        name = self.route.text
        return Suspect(
            name, self.frame, self.route.value, self.device, self.route, self.node, self.binding, tuple(self.aliases),
            self.maker,
        )  # fmt: skip

    def _go(self, route: Route, depth: int | None = None) -> bool:
        self.aliases.append((self.frame, self.route.text))
        self.route = route
        self.depth = self.depth if depth is None else depth
        self.binding = None
        return True

    def _to_enclosing(self) -> bool:
        base = self.route.base
        for depth in range(self.depth - 1, -1, -1):
            frame = self.frames[depth]
            if base in frame.frame.f_code.co_cellvars and base in frame.frame.f_locals:
                outer = resolve(ast.Name(base, ast.Load()), frame)
                if outer is not None and outer.value is self._start():
                    return self._go(self._rebased(outer), depth)
        return False

    def _to_caller(self) -> bool:
        """The parameter's argument, found by identity among the arguments of the caller's running call."""
        depth = self.depth - 1
        if depth < 0:
            return False
        frame = self.frames[depth]
        target = self.route.value
        start = self._start()
        running = frame.running
        arguments = arguments_of(running) if running is not None else []
        for _, node in [*arguments, *_of_inner_calls(arguments, frame, self.frame.frame.f_code)]:
            argument = resolve(node, frame)
            if argument is None:
                continue
            if argument.value is start:
                return self._go(self._rebased(argument), depth)
            if argument.value is target:
                return self._go(argument, depth)
            if is_tensor(target) and not is_module(argument.value) and not is_tensor(argument.value):
                inside = find_inside(argument, target)
                if inside is not None:
                    return self._go(inside, depth)
        return self._to_computed_argument(arguments, frame, depth)

    def _to_computed_argument(self, arguments: list[_Argument], frame: UserFrame, depth: int) -> bool:
        """The argument is an expression: on to the leaf that lent the device, else end at the expression."""
        node = self._matching(arguments)
        if node is None or not is_tensor(self.route.value):
            return False
        lent = [leaf for leaf in lending(node, frame) if device_of_route(leaf) == self.device]
        if lent:
            self.node = node
            return self._go(lent[0], depth)
        self.maker = (frame, node.lineno)
        return False

    def _matching(self, arguments: list[_Argument]) -> ast.expr | None:
        named = next((node for word, node in arguments if word == self.route.base), None)
        if named is not None:
            return named
        caller = self.frames[self.depth - 1].running
        code = self.frame.frame.f_code
        names = [name for name in code.co_varnames[: code.co_argcount] if name not in ("self", "cls")]
        if not isinstance(caller, ast.Call) or self.route.base not in names:
            return None
        position = names.index(self.route.base)
        plain = [node for node in caller.args if not isinstance(node, ast.Starred)]
        return plain[position] if position < len(plain) and len(plain) == len(caller.args) else None

    def _to_source(self, binding: Binding) -> bool:
        """From a variable to what it was bound to, where that is the same tensor in other clothes."""
        if binding.value is None:
            return False
        if binding.loop:
            return self._to_looped(binding)
        if self._to_given(binding.value) or self._to_read_by_method(binding.value):
            return True
        found = resolve(binding.value, self.frame)
        if found is None or (found.value is not self._start() and binding.index is None):
            found = resolve(undressed(binding.value), self.frame)
        if found is None or found.base == self.route.base:
            return False
        if binding.index is not None:
            found = _indexed(found, binding.index)
        start = self._start()
        if found is None:
            return False
        if found.value is start:
            return self._go(self._rebased(found))
        if not self.route.steps and is_tensor(found.value) and is_tensor(start):
            return device_of(found.value) == self.device and self._go(found)
        return False

    def _to_given(self, value: ast.expr) -> bool:
        """From a distribution made in this function to the tensor that it was given."""
        start = self._start()
        given = isinstance(value, ast.Call) and bool(self.route.steps) and not is_tensor(start)
        if not given or not module_of_class(type(start)).startswith("torch.distributions"):
            return False
        lent = [leaf for leaf in lending(value, self.frame) if device_of_route(leaf) == self.device]
        return bool(lent) and is_tensor(lent[0].value) and self._go(lent[0])

    def _to_read_by_method(self, value: ast.expr) -> bool:
        """From what a method of a module computed to the one plain tensor of that module which the method reads.

        `adj = self.normalised()` is where `self.adj` is; a method that makes a tensor of its own may be why instead.
        """
        if self.route.steps or not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            return False
        owner = resolve(value.func.value, self.frame)
        if owner is None or not is_module(owner.value) or value.args or value.keywords:
            return False
        definition = self.frame.source.class_named(name_of_class(type(owner.value), qualified=True))
        read = [
            node.attr for method in (definition.body if definition is not None else ())
            if isinstance(method, ast.FunctionDef) and method.name == value.func.attr
            for node in ast.walk(method) if isinstance(node, ast.Attribute) and _is_self(node.value)
        ]  # fmt: skip
        plain = instance_dict(owner.value)
        here = [name for name in dict.fromkeys(read) if is_tensor(plain.get(name)) and shape_of(plain[name])]
        if len(here) != 1 or device_of(plain[here[0]]) != self.device:
            return False
        step = Step(owner.value, "attribute", here[0])
        return self._go(Route(owner.frame, owner.base, owner.scope, (*owner.steps, step), plain[here[0]]))

    def _to_looped(self, binding: Binding) -> bool:
        """From a loop's variable to the container that it runs over, found by identity in what the loop names."""
        start = self._start()
        if binding.value is None:
            return False
        # The first iterable of a comprehension with a frame of its own is evaluated in the frame around it.
        depths = [self.depth, self.depth - 1] if self.frame.is_comprehension and self.depth else [self.depth]
        nodes = [node for node in ast.walk(binding.value) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript)]
        for depth, node in ((depth, node) for depth in depths for node in nodes):
            route = resolve(node, self.frames[depth])
            if route is None or route.base == self.route.base or is_tensor(route.value):
                continue
            inside = _find_value(route, start)
            if inside is not None:
                return not self._is_row(inside, binding) and self._go(self._rebased(inside), depth)
        return False

    def _is_row(self, inside: Route, binding: Binding) -> bool:
        """Whether the loop unpacks rows of a plain list: `y` of `for x, y in data`, no better called `data[0][1]`."""
        rows = not self.route.steps and isinstance(binding.node, ast.For | ast.AsyncFor) and len(inside.steps) == 2
        kinds = [type(step.owner) for step in inside.steps]
        return rows and is_tensor(self.route.value) and all(kind is list or kind is tuple for kind in kinds)

    def _start(self) -> Any:
        return self.route.steps[0].owner if self.route.steps else self.route.value

    def _rebased(self, base: Route) -> Route:
        """The walk's steps, taken from `base` instead of from the variable."""
        if not self.route.steps:
            return base
        return Route(base.frame, base.base, base.scope, (*base.steps, *self.route.steps), self.route.value)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _of_inner_calls(arguments: list[_Argument], frame: UserFrame, code: CodeType) -> list[_Argument]:
    """What a call among the arguments is given that runs inside the outer call: a generator, or what `map` is to call.

    `list(rows(x))`, `list(map(step, xs))`; also `rows = read(x)` a few lines before.
    """
    generator = code.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR)
    found = []
    for _, node in arguments:
        binding = binding_of(node.id, frame) if isinstance(node, ast.Name) else None
        inner = binding.value if binding is not None and not binding.loop else node
        given = arguments_of(inner) if isinstance(inner, ast.Call) else []
        if generator or any(_runs(each, frame, code) for _, each in given):
            found += given
    return found


def _runs(node: ast.expr, frame: UserFrame, code: CodeType) -> bool:
    """Whether the expression is the function with this code."""
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    route = resolve(node, frame)
    function = route.value if route is not None else None
    return type(function) is FunctionType and function.__code__ is code


def _find_value(start: Route, wanted: Any) -> Route | None:
    if is_tensor(wanted):
        return find_inside(start, wanted)
    for kind, key, value in members(start.value):
        if value is wanted:
            return Route(start.frame, start.base, start.scope, (*start.steps, Step(start.value, kind, key)), value)
    return None


def _indexed(route: Route, index: int) -> Route | None:
    if is_tensor(route.value):
        return route
    value = item(route.value, index)
    if value is MISSING:
        return None
    return Route(route.frame, route.base, route.scope, (*route.steps, Step(route.value, "item", index)), value)


def _device(value: Any) -> str:
    return device_of(value) if is_tensor(value) or is_generator(value) else ""


def _covers(statement: ast.stmt | None, line: int) -> bool:
    return statement is not None and statement.lineno <= line <= (statement.end_lineno or statement.lineno)
