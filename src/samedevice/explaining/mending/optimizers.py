"""Mends of optimizers: constructed after their parameters have their final place, state that follows them."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.live import is_optimizer
from samedevice.explaining.made import Made
from samedevice.explaining.mending.edits import as_fix, indent_of, insert_after, insert_before
from samedevice.explaining.mending.ordering import after_the_move, moved_after, reloaded
from samedevice.explaining.sources import Source, read_source
from samedevice.explaining.syntax import bindings_of, call_name
from samedevice.findings import Fix
from samedevice.texts import say

__all__ = ["constructed_after", "synced"]


def synced(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """The state comes to the parameters where they are moved: by loading it there, or by loading it once more.

    `samedevice.sync_optimizer(optimizer)` does the same; an edit that needs this package is not proposed. Where the
    state was sent elsewhere on purpose, only a person can say where it is to come back.
    """
    return after_the_move(evidence) or reloaded(evidence) or _before_the_step(evidence)


def _before_the_step(evidence: Evidence) -> Fix | None:
    """The state is loaded once more before the step, outside of its loops where that is enough."""
    suspect = evidence.suspect
    route, frame = (suspect.route, suspect.frame) if suspect is not None else (None, None)
    owner = next((step for step in route.steps if is_optimizer(step.owner)), None) if route is not None else None
    if route is None or frame is None or owner is None or frame.statement is None:
        return None
    name, statement = route.upto(owner), frame.statement
    loops = frame.source.loops_around(statement.lineno)
    made = evidence.made
    in_loop = made is not None and loops and loops[0].lineno <= made.line <= (loops[0].end_lineno or 0)
    before = statement if in_loop or not loops else loops[0]
    if "…" in name:
        return None
    edit = insert_before(frame.source, before, f"{name}.load_state_dict({name}.state_dict())")
    return as_fix(edit, safe=False)


def constructed_after(file: str, line: int, model: str, replacing: str | None = None) -> Fix | None:
    """The optimizer's construction, after the parameters that it is to hold exist.

    Args:
        file: where the optimizer is constructed.
        line: on which line.
        model: the variable of the model, e.g. "model".
        replacing: the function that replaced some of its parameters, where that is known.

    Returns:
        None where no statement after the construction is seen to replace the model or its parameters.
    """
    source = read_source(file)
    construction = source.statement_at(line)
    if not isinstance(construction, ast.Assign) or construction.end_lineno is None:
        return None
    changing = _changing_statement(source, construction, model, replacing)
    if changing is None or changing.end_lineno is None:
        return None
    together = moved_after(source, construction, changing)
    if together is not None:
        return together
    indent = indent_of(source, construction) or ""
    texts = [each.removeprefix(indent) for each in source.exact_text(construction).split("\n")]
    edit = insert_after(source, changing, *texts)
    summary = say("{code}  (again after line {line})", code=source.line(line), line=changing.end_lineno)
    return as_fix(edit, summary=summary)


def _changing_statement(source: Source, construction: ast.stmt, model: str, replacing: str | None) -> ast.stmt | None:
    """The last statement after the construction that binds the model anew, or that calls what replaced its parts."""
    scope = source.function_at(construction.lineno) or source.tree
    rebinding = [
        binding.node for binding in bindings_of(model, scope)
        if binding.line > construction.lineno and isinstance(binding.node, ast.Assign) and _constructs(binding.value)
    ]  # fmt: skip
    if rebinding:
        return rebinding[-1] if isinstance(rebinding[-1], ast.stmt) else None
    if replacing is None:
        return None
    simple = [node for node in ast.walk(scope) if isinstance(node, ast.Expr | ast.Assign)]
    later = [node for node in simple if node.lineno > construction.lineno]
    return next((node for node in later if _calls(node, replacing)), None)


def _calls(statement: ast.stmt, name: str) -> bool:
    return any(call_name(node) == name for node in ast.walk(statement) if isinstance(node, ast.expr))


def _constructs(value: ast.expr | None) -> bool:
    return value is not None and any(isinstance(node, ast.Call) for node in ast.walk(value))
