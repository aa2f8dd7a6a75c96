"""Whether the source moves what a variable holds: by a method, by a function that does, or by one that says so."""

from __future__ import annotations

import ast

from samedevice.explaining.routes import Route
from samedevice.explaining.sources import Source
from samedevice.explaining.syntax import call_name, is_move, move_calls, undressed
from samedevice.explaining.words import words_of

__all__ = ["moves_in_source"]

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
