"""How a frame reaches an object: from a variable, by attributes and items, and how that prints as the user's code.

A `Route` keeps every owner on the way, so that a diagnosis can tell a registered buffer from a plain attribute. Routes
come from an expression of the source (`resolve`) or from a search (`search`); both read, and never call.
"""

from __future__ import annotations

import ast
import enum
import itertools
import json
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import (
    instance_dict,
    is_kind,
    is_module,
    is_tensor,
    mro_of,
    name_of_class,
    namespace_of,
    tensors_of_module,
)
from samedevice.explaining.reading import MISSING, attribute, item, kind_of, members
from samedevice.explaining.sources import read_source

__all__ = ["Route", "Step", "key_text", "resolve", "search", "search_all", "value_of"]

_LONGEST_KEY = 120
"""No name that anybody wrote is longer; what is may be data."""
_MOST_VISITED = 20_000
_DEEPEST = 7
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mod: operator.mod,
}
_LIST_LIKE = ("ModuleList", "Sequential", "ParameterList", "ModuleDict", "ParameterDict")


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One look-up: `owner.key` or `owner[key]`."""

    owner: Any
    kind: str
    """parameter, buffer, submodule, attribute or item."""
    key: Any


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A way from a variable of one frame to an object."""

    frame: UserFrame
    base: str
    """The variable that it starts from."""
    scope: str
    """What the variable is in that frame: parameter, local, closure or global (read inside a function)."""
    steps: tuple[Step, ...]
    value: Any
    spelled: str | None = None
    """As the user wrote it, where it stands in the source."""
    spelled_parent: str | None = None
    """The same without its last step."""

    @property
    def text(self) -> str:
        """The route as an expression."""
        return self.spelled or self.base + "".join(_step_text(step, self.frame) for step in self.steps)

    @property
    def depth(self) -> int:
        """How many steps it takes, from module to submodule for nothing: models are nested deeply."""
        return sum(step.kind != "submodule" for step in self.steps)

    @property
    def holder(self) -> Step | None:
        """The last step: who holds the object, and how."""
        return self.steps[-1] if self.steps else None

    @property
    def starts_at_self(self) -> bool:
        """Whether it starts at the method's own object."""
        return self.base in ("self", "cls")

    def parent(self) -> Route:
        """The route to whoever holds the object."""
        return Route(self.frame, self.base, self.scope, self.steps[:-1], self.steps[-1].owner, self.spelled_parent)

    def upto(self, step: Step) -> str:
        """The text that reaches the owner of `step`."""
        index = self.steps.index(step)
        return Route(self.frame, self.base, self.scope, self.steps[:index], step.owner).text

    def container(self) -> Route:
        """The route to the outermost of the containers that end it: `self.rows[0][1]` gives `self.rows`."""
        steps = list(self.steps)
        while steps and steps[-1].kind == "item":
            steps.pop()
        if len(steps) == len(self.steps):
            return self
        return Route(self.frame, self.base, self.scope, tuple(steps), self.steps[len(steps)].owner)

    def plain_container(self) -> int | None:
        """The number of the look-up that reads a list or dict kept as a plain attribute of a module, if one does."""
        pairs = enumerate(itertools.pairwise(self.steps))
        return next((i for i, (step, following) in pairs if _is_plain(step) and following.kind == "item"), None)


def _is_plain(step: Step) -> bool:
    return step.kind == "attribute" and is_module(step.owner)


def resolve(node: ast.AST | None, frame: UserFrame) -> Route | None:
    """The route that the expression `node` spells, where looking alone gives its value.

    Args:
        node: an expression of the source.
        frame: the frame whose variables it reads.

    Returns:
        None where the value is unknown without running code: calls, arithmetic, properties, views of tensors.
    """
    if isinstance(node, ast.NamedExpr):
        return resolve(node.target, frame)
    if isinstance(node, ast.Starred | ast.Await):
        return resolve(node.value, frame)
    if isinstance(node, ast.Name):
        value, scope = _variable(frame, node.id)
        return None if value is MISSING else Route(frame, node.id, scope, (), value, node.id)
    if isinstance(node, ast.Call):
        return _looked_up(node, frame)
    if isinstance(node, ast.Attribute | ast.Subscript):
        owner = resolve(node.value, frame)
        step = _step(node, owner, frame) if owner is not None else None
        if owner is None or step is None:
            return None
        spelled = frame.source.text_of(node)
        return Route(frame, owner.base, owner.scope, (*owner.steps, step[0]), step[1], spelled, owner.text)
    return None


def value_of(node: ast.AST | None, frame: UserFrame) -> Any:
    """The value of the expression `node` by looking alone, else `MISSING`; constants count."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = value_of(node.operand, frame)
        return -inner if type(inner) in (int, float) else MISSING
    if isinstance(node, ast.BinOp):
        return _computed(node, frame)
    if isinstance(node, ast.Tuple):
        parts = tuple(value_of(part, frame) for part in node.elts)
        return MISSING if any(part is MISSING for part in parts) else parts
    route = resolve(node, frame)
    return MISSING if route is None else route.value


def _computed(node: ast.BinOp, frame: UserFrame) -> Any:
    """The sum, difference or remainder of two small integers, as keys have them: `rows[i + 1]`."""
    left, right = value_of(node.left, frame), value_of(node.right, frame)
    if not (type(left) is type(right) is int) or max(abs(left), abs(right)) > sys.maxsize:
        return MISSING
    compute = _OPERATORS.get(type(node.op))
    return MISSING if compute is None or (isinstance(node.op, ast.Mod) and right == 0) else compute(left, right)


def _looked_up(node: ast.Call, frame: UserFrame) -> Route | None:
    """The look-ups that are written as calls: `getattr(box, "mask")` and a dict's own `batch.get("mask")`."""
    named, keys = node.func, node.args[-1:]
    if node.keywords or not keys or not isinstance(keys[0], ast.Constant | ast.Name):
        return None
    key = value_of(keys[0], frame)
    if isinstance(named, ast.Name) and named.id == "getattr" and len(node.args) == 2:
        owner = resolve(node.args[0], frame) if _variable(frame, "getattr")[0] is MISSING else None
        value = attribute(owner.value, key) if owner is not None and type(key) is str else MISSING
        kind = kind_of(owner.value, key) if owner is not None and value is not MISSING else ""
    elif isinstance(named, ast.Attribute) and named.attr == "get" and len(node.args) == 1:
        owner = resolve(named.value, frame)
        value = item(owner.value, key) if owner is not None and _gets_items(owner.value) else MISSING
        kind = "item"
    else:
        return None
    if owner is None or value is MISSING:
        return None
    return Route(frame, owner.base, owner.scope, (*owner.steps, Step(owner.value, kind, key)), value)


def _gets_items(owner: object) -> bool:
    """Whether `owner.get` is a dict's own."""
    if not is_kind(owner, dict):
        return False
    spaces = map(namespace_of, mro_of(type(owner)))
    return next((space["get"] for space in spaces if "get" in space), None) is dict.__dict__["get"]


def search_all(frames: Iterable[UserFrame], wanted: Callable[[Any], bool]) -> Iterator[Route]:
    """`search` in several frames, no object looked into twice: what the first frame reaches, it alone reports.

    Args:
        frames: the first to be searched first.
        wanted: a test that runs no code of the user's.

    Yields:
        As `search`.
    """
    seen: set[int] = set()
    for frame in frames:
        yield from search(frame, wanted, seen=seen)


def modules_named(frames: Iterable[UserFrame]) -> list[Route]:
    """The outermost modules that the variables of the frames reach, each once; those of the first frame first."""
    routes = search_all(frames, is_module)
    return list({id(route.value): route for route in reversed(list(routes))}.values())[::-1]


def search(frame: UserFrame, wanted: Callable[[Any], bool], *, seen: set[int] | None = None) -> Iterator[Route]:
    """Routes from the variables of `frame` to every object that is `wanted`, the shortest first.

    Args:
        frame: where to start: its locals, then the globals of its file.
        wanted: a test that runs no code of the user's.
        seen: identities of objects that need no second look; grows.

    Yields:
        At most one route for each object and owner. The search ends after a fixed number of objects.
    """
    seen = set() if seen is None else seen
    queue: deque[Route] = deque(_variables(frame))
    visited = 0
    while queue and visited < _MOST_VISITED:
        route = queue.popleft()
        visited += 1
        if wanted(route.value):
            yield route
            continue
        if id(route.value) in seen or route.depth >= _DEEPEST:
            continue
        seen.add(id(route.value))
        for kind, key, value in members(route.value):
            if is_tensor(value) or id(value) not in seen:
                step = Step(route.value, kind, key)
                queue.append(Route(frame, route.base, route.scope, (*route.steps, step), value))


def _variables(frame: UserFrame) -> Iterator[Route]:
    own = dict(frame.frame.f_locals)
    top = frame.frame.f_locals is frame.frame.f_globals or frame.function == "<module>"
    # The method's own object last: `mask` says more than `self.masks[3]` about the line at hand.
    names = sorted(own, key=lambda name: name in ("self", "cls"))
    yield from (Route(frame, name, _scope(frame, name), (), own[name]) for name in names if not _is_private(name))
    if not top:
        for name, value in list(frame.frame.f_globals.items()):
            if not _is_private(name) and name not in own:
                yield Route(frame, name, "global", (), value)


def _variable(frame: UserFrame, name: str) -> tuple[Any, str]:
    own = frame.frame.f_locals
    if name in own:
        return own[name], _scope(frame, name)
    if name in frame.frame.f_globals:
        return frame.frame.f_globals[name], "global"
    return MISSING, ""


def _scope(frame: UserFrame, name: str) -> str:
    code = frame.frame.f_code
    if name in code.co_freevars:
        return "closure"
    flags = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]
    return "parameter" if name in parameters else "local"


def _is_private(name: str) -> bool:
    return name.startswith(("__", ".", "@"))


def _step(node: ast.Attribute | ast.Subscript, owner: Route, frame: UserFrame) -> tuple[Step, Any] | None:
    if isinstance(node, ast.Attribute):
        name = node.attr
        value = attribute(owner.value, name)
        if value is MISSING and name.startswith("__") and not name.endswith("__"):
            name = f"_{name_of_class(type(owner.value)).lstrip('_')}{name}"
            value = attribute(owner.value, name)
        if value is MISSING:
            name = _returned_attribute(owner.value, name) or name
            value = attribute(owner.value, name)
        return None if value is MISSING else (Step(owner.value, kind_of(owner.value, name), name), value)
    key = value_of(node.slice, frame)
    value = MISSING if key is MISSING else item(owner.value, key)
    return None if value is MISSING else (Step(owner.value, "item", key), value)


def _returned_attribute(owner: object, name: str) -> str | None:
    """The attribute that a property of the user's does no more than return."""
    found = next((space[name] for space in map(namespace_of, mro_of(type(owner))) if name in space), None)
    getter = found.fget if type(found) is property else None
    if type(getter) is not FunctionType:
        return None
    code = getter.__code__
    definition = read_source(code.co_filename).function_at(code.co_firstlineno, code.co_name)
    body = definition.body[-1:] if isinstance(definition, ast.FunctionDef) and len(definition.body) == 1 else []
    value = body[0].value if body and isinstance(body[0], ast.Return) else None
    plain = isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "self"
    return value.attr if plain and isinstance(value, ast.Attribute) else None


def _step_text(step: Step, frame: UserFrame) -> str:
    if step.kind == "item" and is_tensor(step.key):
        return f"[{_way_in_a_module(step.key, frame) or '…'}]"
    if step.kind == "item":
        return f"[{key_text(step.key)}]"
    if step.kind in ("submodule", "parameter") and name_of_class(type(step.owner)) in _LIST_LIKE:
        key = str(step.key)
        if key.isdigit():
            return f"[{key}]"
        # Only dictionaries of modules take a name in brackets.
        return f"[{json.dumps(key)}]" if name_of_class(type(step.owner)).endswith("Dict") else f".{key}"
    return f".{step.key}"


def _way_in_a_module(parameter: Any, frame: UserFrame) -> str | None:
    """What a parameter that serves as a key is called: `model.head.weight`, from the modules that variables name."""
    for route in _variables(frame):
        if not is_module(route.value) or not any(tensor is parameter for *_, tensor in tensors_of_module(route.value)):
            continue
        ways = deque([route])
        while ways:
            way = ways.popleft()
            for kind, key, value in members(way.value) if is_module(way.value) else ():
                step = Step(way.value, kind, key)
                further = Route(frame, way.base, way.scope, (*way.steps, step), value)
                if value is parameter and kind == "parameter":
                    return further.text
                if kind == "submodule":
                    ways.append(further)
    return None


def key_text(key: object) -> str:
    """A container's key as code; keys that are no plain values (a parameter, an object) as an ellipsis."""
    if type(key) is str:
        return json.dumps(key, ensure_ascii=False) if len(key) <= _LONGEST_KEY else "…"
    if type(key) is int and abs(key) > sys.maxsize:
        return "…"
    if any(type(key) is plain for plain in (int, bool, float, type(None))):
        return repr(key)
    if is_kind(key, enum.Enum):
        name = instance_dict(key).get("_name_")
        return f"{name_of_class(type(key))}.{name}" if type(name) is str else "…"
    if type(key) is tuple and key:
        return ", ".join(key_text(part) for part in key)
    return "…"
