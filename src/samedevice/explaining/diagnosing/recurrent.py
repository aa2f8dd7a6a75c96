"""Recurrent state that was made apart from the input: told by the layer's argument, or by its name and its use."""

from __future__ import annotations

import ast
import re

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.live import is_module, modules_of, name_of_class
from samedevice.explaining.making import factory_call
from samedevice.explaining.routes import resolve
from samedevice.explaining.sources import Function
from samedevice.explaining.syntax import bindings_of
from samedevice.texts import say

__all__ = ["recurrent"]

# Not `hidden_states`: so transformers call what goes from layer to layer.
_HIDDEN = r"hidden(?!_states)|\b[hc]_?[0n]\b|\b[hc]x\b|\bcell(_?state)?\b"
_LAYER = re.compile(r"RNN|LSTM|GRU|Recurrent")


def recurrent(evidence: Evidence) -> Verdict | None:
    """The state of a recurrent layer, or of a layer of the user's that is used as one."""
    wrong = evidence.side.wrong if evidence.side is not None else ()
    argument = wrong[0].argument or "" if wrong else ""
    if argument in ("hx", "cx", "hidden") or (_calls_recurrent_layer(evidence) and not _is_first_argument(evidence)):
        return Verdict(
            "hidden-state", say("the recurrent state is made apart from the input and was not moved with it")
        )
    made = evidence.made
    if made is None or factory_call(made.statement, made.source) is None or not evidence.called(_HIDDEN):
        return None
    if not _is_carried(evidence) and not _holds_recurrent_layer(evidence):
        return None
    return Verdict("hidden-state", say("it is made as a recurrent state, and was not moved with the input"))


def _calls_recurrent_layer(evidence: Evidence) -> bool:
    running = evidence.frame.running if evidence.frame is not None else None
    callee = resolve(running.func, evidence.frame) if isinstance(running, ast.Call) and evidence.frame else None
    return callee is not None and is_module(callee.value) and _is_recurrent(callee.value)


def _is_recurrent(module: object) -> bool:
    return _LAYER.search(name_of_class(type(module))) is not None


def _is_first_argument(evidence: Evidence) -> bool:
    """Whether the wrong tensor is the layer's input, or the layer's own: anything but the state passed to it."""
    running = evidence.frame.running if evidence.frame is not None else None
    wrong = evidence.side.wrong if evidence.side is not None else ()
    first = running.args[0] if isinstance(running, ast.Call) and running.args else None
    return any(one.node is None or one.node is first for one in wrong)


def _holds_recurrent_layer(evidence: Evidence) -> bool:
    """Whether a model in reach is a recurrent layer or has one."""
    return any(_is_recurrent(module) for route in evidence.models() for module in modules_of(route.value))


def _is_carried(evidence: Evidence) -> bool:
    """Whether a line gives the name what it computes of it: `y, h = cell(x, h)`, `h = torch.tanh(self.w(h) + x)`."""
    suspect = evidence.suspect
    names = [(suspect.frame, suspect.name), *suspect.aliases] if suspect is not None else []
    for frame, name in names:
        nodes = list(ast.walk(frame.definition or frame.source.tree))
        if any(isinstance(node, ast.Assign) and _carries(node, name) for node in nodes):
            return True
        if frame.definition is not None and _is_handed_back(frame.definition, name):
            return True
    return False


def _carries(node: ast.Assign, name: str) -> bool:
    if not any(_is_named(part, name) for target in node.targets for part in _of(target)):
        return False
    calls = [call for call in ast.walk(node.value) if isinstance(call, ast.Call)]
    given = [part for call in calls for part in (*call.args, *(word.value for word in call.keywords))]
    return any(_is_named(inner, name) for part in given for inner in ast.walk(part))


def _is_handed_back(function: Function, name: str) -> bool:
    """Whether a function gives its parameter a new value and returns that: `h = self.inner(both); return y, h`."""
    arguments = function.args
    if name not in [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]:
        return False
    if not any(isinstance(binding.value, ast.Call) for binding in bindings_of(name, function)):
        return False
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
    return any(_is_named(part, name) for value in returned for part in _of(value))


def _of(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        return [part for each in target.elts for part in _of(each)]
    return [target]


def _is_named(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name
    return isinstance(node, ast.Attribute) and name.endswith(node.attr) and ast.unparse(node) == name
