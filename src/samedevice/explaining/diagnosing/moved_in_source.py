"""Whether and where to the source moves what a variable holds: by a method, or by a function that moves or says so."""

from __future__ import annotations

import ast

from samedevice.explaining.live import device_of, is_tensor
from samedevice.explaining.reading import members
from samedevice.explaining.routes import Route
from samedevice.explaining.sources import Source
from samedevice.explaining.syntax import call_name, is_move, move_calls, undressed
from samedevice.explaining.words import words_of

__all__ = ["moved_elsewhere", "moves_in_source"]

_VERBS = frozenset({"to", "move", "send", "transfer", "put", "copy", "place"})
_PLACES = frozenset({"device", "devices", "cuda", "gpu", "accelerator"})


def moves_in_source(route: Route) -> bool:
    """Whether the function moves what the variable is called, or what it takes out of it, or hands it to a mover."""
    source = route.frame.source
    scope = route.frame.definition or source.tree
    names = {route.base}
    for node in ast.walk(scope):
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) and names & _names_in(node.iter):
            names |= _names_in(node.target)
    for call in ast.walk(scope):
        if isinstance(call, ast.Call) and any(names & _names_in(undressed(node)) for node in _moved_by(call, source)):
            return True
    return False


def moved_elsewhere(route: Route, expected: str) -> str | None:
    """The variable that keeps what was moved of what the route starts at: `ys` of `ys = [x.cuda() for x in xs]`.

    Args:
        route: the way to the wrong tensor.
        expected: where it should be, and where the variable holds a tensor.

    Returns:
        None where there is no such variable, or several.
    """
    frame, scope = route.frame, route.frame.definition or route.frame.source.tree
    kept: set[str] = set()
    for node in ast.walk(scope):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Name) or node.lineno >= frame.line:
            continue
        if any(isinstance(part, ast.Name) and part.id == route.base for part in _moved_whole(node.value, frame.source)):
            kept |= {target.id} if _holds_on(frame.frame.f_locals.get(target.id), expected) else set()
    return kept.pop() if len(kept) == 1 and route.base not in kept else None


def _holds_on(value: object, device: str) -> bool:
    held = [value] if is_tensor(value) else [inner for _, _, inner in members(value)]
    return any(is_tensor(each) and device_of(each) == device for each in held)


def _moved_whole(value: ast.expr, source: Source) -> list[ast.expr]:
    """What an expression is a moved copy of: `x` of `x.cuda()`, `xs` of `[x.cuda() for x in xs]`."""
    if isinstance(value, ast.Call) and call_name(value) in ("list", "tuple") and len(value.args) == 1:
        value = value.args[0]
    if isinstance(value, ast.Call):
        return [undressed(node) for node in _moved_by(value, source)]
    if not isinstance(value, ast.ListComp | ast.GeneratorExp | ast.DictComp) or len(value.generators) > 1:
        return []
    each, over = value.generators[0], value.generators[0].iter
    moved = value.value if isinstance(value, ast.DictComp) else value.elt
    if each.ifs or not isinstance(moved, ast.Call):
        return []
    if not any(_names_in(node) & _names_in(each.target) for node in _moved_by(moved, source)):
        return []
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items":
        return [over.func.value]
    return [over]


def _moved_by(call: ast.Call, source: Source) -> list[ast.expr]:
    """What the call moves: the receiver of `.to(device)`, the arguments of `move_to_device(batch, device)`."""
    if isinstance(call.func, ast.Attribute) and is_move(call):
        return [call.func.value]
    return [*call.args, *(word.value for word in call.keywords)] if _is_mover(call, source) else []


def _is_mover(call: ast.Call, source: Source) -> bool:
    """Whether a function of the file moves something, or one from elsewhere is called so and told a device."""
    name = call_name(call)
    functions = source.functions_named(name)
    if any(True for function in functions for _ in move_calls(function)):
        return True
    if functions and isinstance(call.func, ast.Name):
        return False
    words = set(words_of(name))
    given = (words_of(_last_name(node)) for node in [*call.args, *(word.value for word in call.keywords)])
    told = any(_PLACES & set(each) or each == ["dev"] for each in given)
    return bool(words & _VERBS and words & _PLACES) or (told and bool(words & (_VERBS | {"prepare", "cuda"})))


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is str else ""
    return node.id if isinstance(node, ast.Name) else ""


def _names_in(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
