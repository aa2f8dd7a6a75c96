"""The mend of a distribution that a module keeps: its parameters become buffers, and a property puts it together."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence
from samedevice.explaining.drawn_from import distribution_of, drawn_from
from samedevice.explaining.made import Made
from samedevice.explaining.making import factory_call, from_data
from samedevice.explaining.mending.edits import as_fix, lines_of, replace_lines
from samedevice.explaining.routes import Step
from samedevice.explaining.set_in_class import only_assignment
from samedevice.explaining.sources import Source
from samedevice.explaining.syntax import keyword
from samedevice.findings import Fix

__all__ = ["parameters_as_buffers"]


def parameters_as_buffers(evidence: Evidence) -> Fix | None:
    """`self.prior = Normal(torch.zeros(d), torch.ones(d))` becomes two buffers and a property `prior`.

    Only where each parameter is made by a factory in the call and the rest of the call can be said in any method.
    """
    for route in [evidence.suspect.route if evidence.suspect is not None else None, *evidence.homes_elsewhere()]:
        held = distribution_of(route)
        if held is not None:
            return _replaced(*held)
    drawn = drawn_from(evidence.made, evidence.frames)
    return _replaced(*drawn[1:]) if drawn is not None else None


def _replaced(step: Step, distribution: object) -> Fix | None:
    made = only_assignment(step)
    return _edit(made, str(step.key), type(distribution)) if made is not None else None


def _edit(made: Made, name: str, kind: type) -> Fix | None:
    source, statement = made.source, made.statement
    method = source.function_at(made.line)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call) or method is None:
        return None
    if isinstance(method, ast.Lambda) or method.end_lineno is None or statement.end_lineno is None:
        return None
    factories = _factories(statement.value, source)
    text = _said_anywhere(source, statement.value, factories, name, kind)
    if not factories or text is None:
        return None
    outer, inner = (" " * each for each in (method.col_offset, statement.col_offset))
    buffers = [
        f'{inner}self.register_buffer("{each}", {source.text_of(call)}, persistent=False)'
        for each, call in zip(_names(statement.value, factories, name, kind), factories, strict=True)
    ]
    rest = lines_of(source, statement.end_lineno + 1, method.end_lineno)
    new = [*buffers, *rest, "", f"{outer}@property", f"{outer}def {name}(self):", f"{outer}    return {text}"]
    summary = " ".join(each.strip() for each in buffers)
    return as_fix(replace_lines(source, statement.lineno, method.end_lineno, new), summary=summary)


def _factories(call: ast.Call, source: Source) -> list[ast.Call]:
    """The calls inside that make a tensor where nothing says where, outermost ones only."""
    found: list[ast.Call] = []
    pending: list[ast.AST] = [*call.args, *(word.value for word in call.keywords)]
    while pending:
        node = pending.pop(0)
        made = factory_call(node, source) or from_data(node, source)
        if isinstance(node, ast.Call) and made is node and keyword(node, "device") is None:
            found.append(node)
        else:
            pending.extend(ast.iter_child_nodes(node))
    return found


def _names(call: ast.Call, factories: list[ast.Call], name: str, kind: type) -> list[str]:
    """`prior_loc`, `prior_scale`, by the words of the distribution; numbered where it is nested deeper."""
    code = getattr(vars(kind).get("__init__"), "__code__", None)
    words = list(code.co_varnames[1 : code.co_argcount]) if code is not None else []
    said = {id(word.value): word.arg for word in call.keywords}
    said |= {id(argument): word for argument, word in zip(call.args, words, strict=False)}
    return [f"{name.lstrip('_')}_{said.get(id(each)) or number}" for number, each in enumerate(factories)]


def _said_anywhere(source: Source, call: ast.Call, factories: list[ast.Call], name: str, kind: type) -> str | None:
    """The call with the buffers in place of the factories; None where it reads variables of the method."""
    inside = {id(node) for each in factories for node in ast.walk(each)}
    method = source.function_at(call.lineno)
    scope = [*ast.walk(method)] if method is not None else []
    local = {node.id for node in scope if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    local |= {node.arg for node in scope if isinstance(node, ast.arg)} - {"self"}
    outside = [node for node in ast.walk(call) if isinstance(node, ast.Name) and id(node) not in inside]
    if any(node.id in local for node in outside):
        return None
    text = source.text_of(call)
    for each, buffer in zip(factories, _names(call, factories, name, kind), strict=True):
        text = text.replace(source.text_of(each), f"self.{buffer}", 1)
    return text
