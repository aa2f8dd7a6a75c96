"""Which line made a tensor, or left it behind.

Recorded origins are believed; without them the user's source is searched: the statement that bound the variable, the
assignment to the attribute in its class, the entry of the container.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from samedevice.explaining.flow import Suspect
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import (
    device_of,
    is_module,
    is_tensor,
    namespace_of,
    tensors_of_module,
)
from samedevice.explaining.made import Made, Origins
from samedevice.explaining.making import factory_call, fixed_device, from_data
from samedevice.explaining.routes import Route, resolve
from samedevice.explaining.set_in_class import classes_of, held_by, set_on_this_object
from samedevice.explaining.sources import read_source
from samedevice.explaining.syntax import bindings_of, call_name, move_calls
from samedevice.usercode import is_user_file

__all__ = ["default_argument", "in_source", "root_made", "where_made"]

_TAKING = ("pop", "popitem", "popleft", "get", "setdefault")
"""Methods of containers that give out what they hold."""


def where_made(suspect: Suspect, origins: Origins | None) -> Made | None:
    """The line that made or left behind what `suspect` names.

    Args:
        suspect: where the walk back from the failing line ended.
        origins: what was recorded while the program ran, if anything.

    Returns:
        None where neither the record nor the source tells.
    """
    recorded = _recorded(suspect, origins)
    partial = _partly_moved(suspect)
    if partial is not None and (recorded is None or recorded.event != "moved"):
        return partial
    return recorded or in_source(suspect)


def root_made(suspect: Suspect, origins: Origins | None) -> Made | None:
    """The line that made, moved or loaded the data that the suspect was computed from, where that was recorded."""
    origin = origins.root_of(suspect.value) if origins is not None and is_tensor(suspect.value) else None
    if origin is None or not is_user_file(origin.file):
        return None
    return Made(origin.file, origin.line, origin.function, origin.event, origin.operation, True)


def in_source(suspect: Suspect) -> Made | None:
    """The line by reading the source alone."""
    steps = suspect.route.steps[::-1] if suspect.route is not None else ()
    for look_up in (set_on_this_object, held_by):
        for step in steps:
            made = look_up(step, suspect.frame)
            if made is not None:
                return made
    entry = _entry_set(suspect)
    if entry is not None:
        return entry
    if suspect.binding is not None:
        helped = _in_helper(suspect)
        return helped or Made(suspect.frame.file, suspect.binding.line, suspect.frame.function)
    enclosing = _in_enclosing(suspect)
    if enclosing is not None:
        return enclosing
    default = default_argument(suspect)
    if default is not None:
        return Made(suspect.frame.file, default.lineno, suspect.frame.function)
    if suspect.maker is not None:
        frame, line = suspect.maker
        return Made(frame.file, line, frame.function)
    if suspect.route is not None and suspect.route.scope == "global":
        return _at_module_level(suspect.route)
    if isinstance(suspect.node, ast.expr) and suspect.route is None:
        return _taken_from(suspect.node, suspect.frame) or Made(
            suspect.frame.file, suspect.node.lineno, suspect.frame.function
        )
    return None


def _in_helper(suspect: Suspect) -> Made | None:
    """The line of a helper in the same file that makes, on a device of its own choice, all that it returns."""
    binding, source = suspect.binding, suspect.frame.source
    value = binding.value if binding is not None and not binding.loop else None
    functions = list(source.functions_named(call_name(value))) if isinstance(value, ast.Call) else []
    if len(functions) != 1 or isinstance(functions[0], ast.Lambda):
        return None
    returned = [node for node in ast.walk(functions[0]) if isinstance(node, ast.Return) and node.value is not None]
    statement: ast.AST | None = returned[0] if len(returned) == 1 else None
    if isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name):
        bound = bindings_of(statement.value.id, functions[0])
        statement = bound[0].node if len(bound) == 1 else None
    chooses = statement is not None and (
        factory_call(statement, source) or from_data(statement, source) or fixed_device(statement, outermost=True)
    )
    line = getattr(statement, "lineno", 0)
    return Made(suspect.frame.file, line, functions[0].name) if chooses else None


def _in_enclosing(suspect: Suspect) -> Made | None:
    """For a closure's variable: the statement of the function around it, which may have returned long ago."""
    route, frame = suspect.route, suspect.frame
    if route is None or route.scope != "closure":
        return None
    around = frame.source.functions_around(frame.frame.f_code.co_firstlineno)
    for function in reversed(around[:-1]):
        bindings = bindings_of(route.base, function)
        if bindings:
            return Made(frame.file, bindings[-1].line, getattr(function, "name", ""))
    return None


def _taken_from(node: ast.expr, frame: UserFrame) -> Made | None:
    """Where what an expression takes apart came from: the dict of `batch.pop("mask")`, the body of a property."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TAKING:
        owner = node.func.value
        bindings = bindings_of(owner.id, frame.definition or frame.source.tree) if isinstance(owner, ast.Name) else []
        earlier = [binding for binding in bindings if binding.line < node.lineno]
        return Made(frame.file, earlier[-1].line, frame.function) if earlier else None
    route = resolve(node.value, frame) if isinstance(node, ast.Attribute) else None
    if route is None or not isinstance(node, ast.Attribute):
        return None
    spaces = map(namespace_of, classes_of(route.value))
    found = next((space[node.attr] for space in spaces if node.attr in space), None)
    code = getattr(found.fget, "__code__", None) if type(found) is property else None
    if type(code) is not types.CodeType or not is_user_file(code.co_filename):
        return None
    definition = read_source(code.co_filename).function_at(code.co_firstlineno, code.co_name)
    returns = [inner for inner in ast.walk(definition) if isinstance(inner, ast.Return)] if definition else []
    return Made(code.co_filename, returns[-1].lineno, code.co_name) if returns else None


def default_argument(suspect: Suspect) -> ast.expr | None:
    """The default value that a parameter kept, since the call did not pass it."""
    route, definition = suspect.route, suspect.frame.definition
    if route is None or route.scope != "parameter" or definition is None or suspect.maker is not None:
        return None
    arguments = definition.args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(name, value) for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value]
    return next((value for name, value in pairs if name.arg == route.base), None)


def _recorded(suspect: Suspect, origins: Origins | None) -> Made | None:
    tensor = _tensor_of(suspect.value, suspect.device)
    if origins is None or tensor is None:
        return None
    origin = origins.origin_of(tensor)
    if origin is None or not is_user_file(origin.file):
        return None
    return Made(origin.file, origin.line, origin.function, origin.event, origin.operation, True)


def _tensor_of(value: Any, device: str) -> Any:
    if is_tensor(value):
        return value
    if not is_module(value):
        return None
    tensors = [tensor for _, _, tensor in tensors_of_module(value)]
    return next((tensor for tensor in tensors if device_of(tensor) == device), next(iter(tensors), None))


def _partly_moved(suspect: Suspect) -> Made | None:
    """The statement that moved what the variable holds, and missed this part of it: it goes not deep enough."""
    binding = suspect.binding
    if binding is None or suspect.route is None or not suspect.route.steps or binding.loop:
        return None
    if is_module(suspect.route.steps[0].owner) and suspect.route.steps[-1].kind in ("parameter", "buffer", "submodule"):
        return None  # a module's `.to()` goes all the way down; what is not there now came later
    if binding.value is None or not any(True for _ in move_calls(binding.value)):
        return None
    return Made(suspect.frame.file, binding.line, suspect.frame.function)


def _entry_set(suspect: Suspect) -> Made | None:
    """`table[key] = …` for an entry of a container that a global variable holds."""
    route = suspect.route
    if route is None or route.scope != "global" or not route.steps or route.steps[0].kind != "item":
        return None
    source = route.frame.source
    for node in [node for node in ast.walk(source.tree) if isinstance(node, ast.Assign)]:
        entries = [target for target in node.targets if isinstance(target, ast.Subscript)]
        if any(source.text_of(target.value) == route.base for target in entries):
            return Made(source.file, node.lineno, getattr(source.function_at(node.lineno), "name", ""))
    return None


def _at_module_level(route: Route) -> Made | None:
    file = route.frame.file
    for node in reversed(read_source(file).tree.body):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(part, ast.Name) and part.id == route.base for t in targets for part in ast.walk(t)):
                return Made(file, node.lineno, "<module>")
    return None
