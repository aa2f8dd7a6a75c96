"""Moves whose result nothing keeps."""

from __future__ import annotations

import ast

from samedevice.explaining.flow import Suspect
from samedevice.explaining.live import instance_dict, is_module, is_tensor
from samedevice.explaining.made import Made, Origins
from samedevice.explaining.operands import moved_to
from samedevice.explaining.routes import resolve
from samedevice.explaining.sources import Source, read_source
from samedevice.explaining.syntax import dropped_in_loop, is_discarded_move, move_calls

__all__ = ["discarded_move", "forgetting_loop"]


def discarded_move(suspect: Suspect, expected: str, origins: Origins | None) -> Made | None:
    """A move of the very tensor whose result nothing kept, so that the old one went on being used.

    Args:
        suspect: the tensor.
        expected: the device where it should have been.
        origins: what was recorded, if anything.

    Returns:
        The line of the move; None where there is none.
    """
    if is_module(suspect.value):
        return None
    for origin in reversed(
        origins.moves_of(suspect.value) if origins is not None and suspect.value is not None else ()
    ):
        if not _is_where(origin.device, expected):
            continue
        source = read_source(origin.file)
        statement = source.statement_at(origin.line)
        dropped = is_discarded_move(statement) or forgetting_loop(source, statement)
        if dropped is not None or _sets_shadowed_entry(statement, suspect):
            return Made(origin.file, origin.line, origin.function, "moved", origin.operation, True)
    return _discarded_in_source(suspect, expected) or _shadowed_in_source(suspect, expected)


def _is_where(device: str, expected: str) -> bool:
    """Whether a move to `device` would have brought it to where it should be; one to an unknown place may have."""
    return not device or not expected or device in (expected, expected.partition(":")[0])


def forgetting_loop(source: Source, statement: ast.stmt | None) -> ast.For | ast.AsyncFor | None:
    """The loop whose variable `statement` moves, so that it keeps the moved one for this round at most.

    With `x = x.to(device)` only where that is all that the loop does; with a bare `x.to(device)` in any.
    """
    call = is_discarded_move(statement)
    moved = call.func.value if call is not None and isinstance(call.func, ast.Attribute) else None
    name = moved.id if isinstance(moved, ast.Name) else ""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.For | ast.AsyncFor):
            if node.body[0] is statement and dropped_in_loop(node):
                return node
            if name and _sets_name(node, name) and any(inner is statement for inner in ast.walk(node)):
                return node
    return None


def _sets_name(loop: ast.For | ast.AsyncFor, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(loop.target))


def _discarded_in_source(suspect: Suspect, expected: str) -> Made | None:
    """A line that is only a move of the same expression, or of the object that holds it, before it was used."""
    for frame, text in [(suspect.frame, suspect.name), *suspect.aliases]:
        scope = frame.definition or frame.source.tree
        for node in ast.walk(scope):
            call = is_discarded_move(node) if isinstance(node, ast.Expr) else None
            if call is None or not isinstance(call.func, ast.Attribute) or call.lineno > frame.line:
                continue
            moved = resolve(call.func.value, frame)
            if (moved is not None and is_module(moved.value)) or not _is_where(moved_to(call, frame), expected):
                continue  # a module moves in place
            if _is_or_begins(frame.source.text_of(call.func.value), text):
                return Made(frame.file, call.lineno, frame.function)
    return None


def _is_or_begins(part: str, whole: str) -> bool:
    """Whether expression `part` is `whole` or what `whole` is looked up in: `graph` begins `graph.x`."""
    part, whole = part.replace(" ", ""), whole.replace(" ", "")
    return whole == part or whole.startswith((f"{part}.", f"{part}["))


def _sets_shadowed_entry(statement: ast.stmt | None, suspect: Suspect) -> bool:
    """`batch.mask = batch.mask.to(…)` on a mapping sets an attribute beside the entry that goes on being used."""
    holder = suspect.holder
    if not isinstance(statement, ast.Assign) or holder is None or holder.kind != "item":
        return False
    return type(holder.key) is str and any(
        isinstance(target, ast.Attribute) and target.attr == holder.key for target in statement.targets
    )


def _shadowed_in_source(suspect: Suspect, expected: str) -> Made | None:
    holder = suspect.holder
    if holder is None or holder.kind != "item" or type(holder.key) is not str:
        return None
    owner = suspect.route.steps[-1].owner if suspect.route is not None else None
    if not is_tensor(instance_dict(owner).get(holder.key)):
        return None
    for node in ast.walk(suspect.frame.source.tree):
        if not isinstance(node, ast.stmt) or not _sets_shadowed_entry(node, suspect):
            continue
        if any(_is_where(moved_to(call, suspect.frame), expected) for call in move_calls(node)):
            return Made(suspect.frame.file, node.lineno, suspect.frame.function)
    return None
