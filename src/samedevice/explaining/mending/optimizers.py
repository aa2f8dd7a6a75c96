"""The mend of a stale optimizer: constructed again, or only, after the statement that replaced its parameters."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.live import is_optimizer
from samedevice.explaining.mending.edits import insert_before
from samedevice.explaining.sources import Source, read_source
from samedevice.explaining.syntax import bindings_of, call_name
from samedevice.explaining.where_made import Made
from samedevice.findings import Edit, Fix

__all__ = ["constructed_after", "synced"]


def synced(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`samedevice.sync_optimizer(optimizer)` before the line that steps; not safe, since the script needs this package.

    Where the state was sent elsewhere on purpose, only a person can say where it is to come back.
    """
    suspect = evidence.suspect
    route, frame = (suspect.route, suspect.frame) if suspect is not None else (None, None)
    owner = next((step for step in route.steps if is_optimizer(step.owner)), None) if route is not None else None
    if route is None or frame is None or owner is None or frame.statement is None:
        return None
    name = route.upto(owner)
    edit = insert_before(frame.source, frame.statement, f"samedevice.sync_optimizer({name})")
    if edit is None or "…" in name:
        return None
    imported = _import_edit(frame.source)
    return Fix(f"samedevice.sync_optimizer({name})", (edit, *([imported] if imported else ())), safe=False)


def _import_edit(source: Source) -> Edit | None:
    """The edit that imports this package before the file's first import; None where it is imported."""
    imports = [node for node in source.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if any(isinstance(node, ast.Import) and any(a.name == "samedevice" for a in node.names) for node in imports):
        return None
    first = next((node for node in imports if getattr(node, "module", "") != "__future__"), None)
    return insert_before(source, first, "import samedevice") if first is not None else None


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
    lines = [text.rstrip("\r\n") for text in source.lines]
    text = lines[construction.lineno - 1 : construction.end_lineno]
    together = _block_of(source, construction) is _block_of(source, changing)
    if together and not _is_used_between(source, construction, changing):
        old = lines[construction.lineno - 1 : changing.end_lineno]
        new = [*lines[construction.end_lineno : changing.end_lineno], *text]
        while new and not new[0].strip():
            new.pop(0)
        edit = Edit(file, construction.lineno, changing.end_lineno, "\n".join(old), "\n".join(new))
        return Fix(f"{text[0].strip()}  (after line {changing.end_lineno})", (edit,))
    last = lines[changing.end_lineno - 1]
    indent = " " * changing.col_offset
    moved = [indent + each[construction.col_offset :] for each in text]
    edit = Edit(file, changing.end_lineno, changing.end_lineno, last, "\n".join([last, *moved]))
    return Fix(f"{text[0].strip()}  (again after line {changing.end_lineno})", (edit,))


def _is_used_between(source: Source, construction: ast.Assign, changing: ast.stmt) -> bool:
    """Whether the optimizer is needed before the parameters change, so that it has to be constructed twice."""
    names = {part.id for target in construction.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    block = _block_of(source, construction) or []
    between = block[block.index(construction) + 1 : block.index(changing)]
    return any(isinstance(part, ast.Name) and part.id in names for each in between for part in ast.walk(each))


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


def _block_of(source: Source, statement: ast.stmt) -> list[ast.stmt] | None:
    for node in ast.walk(source.tree):
        for _, block in ast.iter_fields(node):
            if isinstance(block, list) and any(each is statement for each in block):
                return block
    return None
