"""Moves an input where its neighbours are moved, as they are: `meta = batch["meta"]` gets the `.to(CFG.device)` too.

What the call is given is a name of its own by then, so moving what the name was read from would come too late.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.explaining.diagnosing.evidence import Evidence
from samedevice.explaining.flow import binding_of
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import device_of, is_tensor
from samedevice.explaining.mending.devices_in_scope import device_in_frame
from samedevice.explaining.mending.edits import append, as_fix, enclosed, insert_after, insert_before, replace_node
from samedevice.explaining.routes import resolve
from samedevice.explaining.syntax import move_calls
from samedevice.findings import Fix

__all__ = ["moved_beside"]


def moved_beside(evidence: Evidence) -> Fix | None:
    """The move of a local variable where it is bound, or after the line that moves what was bound with it.

    Args:
        evidence: what was read; its suspect is followed back to the frame where the data came in.

    Returns:
        None where no local variable of that frame stands for the tensor.
    """
    suspect = evidence.suspect
    running = suspect.frame.statement if suspect is not None else None
    if suspect is None or running is None:
        return None
    frame = suspect.frame
    here = [text for owner, text in suspect.aliases if owner is frame]
    name = next(iter(here), suspect.name)
    binding = binding_of(name, frame) if name.isidentifier() else None
    if binding is None or binding.line >= running.lineno or not _is_wrong(name, frame, evidence):
        return None
    node = binding.node
    single = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    sister = _sister(frame, evidence.expected, 0 if single else binding.line)
    move = _suffix(frame, sister) if sister is not None else None
    if here and single and isinstance(node, ast.Assign) and not list(move_calls(node.value)):
        return _where_bound(node.value, frame, move or _plain(frame, evidence.expected, node.lineno))
    behind = sister is not None and sister.lineno >= binding.line
    if sister is not None and behind and move is not None:
        return as_fix(insert_after(frame.source, sister, f"{name} = {name}{move}"))
    move = _plain(frame, evidence.expected, frame.line)
    return as_fix(insert_before(frame.source, running, f"{name} = {name}{move}")) if here and move else None


def _where_bound(value: ast.expr, frame: UserFrame, move: str | None) -> Fix | None:
    if move is None:
        return None
    text = enclosed(frame.source, value)
    if text == frame.source.text_of(value):
        return as_fix(append(frame.source, value, move))
    return as_fix(replace_node(frame.source, value, text + move))


def _plain(frame: UserFrame, expected: str, line: int) -> str | None:
    device = device_in_frame(frame, expected, line)
    return f".to({device})" if device is not None else None


def _is_wrong(name: str, frame: UserFrame, evidence: Evidence) -> bool:
    route = resolve(ast.Name(name, ast.Load()), frame)
    return route is not None and is_tensor(route.value) and device_of(route.value) == evidence.device


def _sister(frame: UserFrame, expected: str, bound: int) -> ast.Assign | None:
    """The last line before the running one that moves another variable to where this one should be.

    It stands in the same block or one around it, and so does not run on some other path only.
    """
    for block, index in _blocks(frame):
        for statement in reversed(block[:index]):
            if (
                isinstance(statement, ast.Assign)
                and statement.lineno >= bound
                and _moves_to(statement, frame, expected)
            ):
                return statement
    return None


def _moves_to(statement: ast.Assign, frame: UserFrame, expected: str) -> bool:
    names = [part for target in statement.targets for part in _parts(target)]
    values = [value for value in _parts(statement.value) if isinstance(value, ast.Call)]
    moved = bool(values) and all(value in list(move_calls(value)) for value in values)
    routes = [resolve(name, frame) for name in names if isinstance(name, ast.Name)]
    return (
        moved
        and bool(routes)
        and all(route is not None and is_tensor(route.value) and device_of(route.value) == expected for route in routes)
    )


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def _suffix(frame: UserFrame, sister: ast.Assign) -> str | None:
    """`.to(device, non_blocking=True)`, as the line beside it says it."""
    call = _parts(sister.value)[0]
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    given = [*call.args, *(word.value for word in call.keywords)]
    plain = all(isinstance(part, ast.Name | ast.Attribute | ast.Constant) for part in given)
    receiver, text = frame.source.text_of(call.func.value), frame.source.text_of(call)
    return text[len(receiver) :] if plain and text.startswith(f"{receiver}.") and "\n" not in text else None


def _blocks(frame: UserFrame) -> Iterator[tuple[list[ast.stmt], int]]:
    """The blocks around the running statement, innermost first, each with the index of what runs in it."""
    found: list[tuple[list[ast.stmt], int]] = []
    block, line = list((frame.definition or frame.source.tree).body), frame.line  # type: ignore[arg-type]
    while block:
        index = next((i for i, one in enumerate(block) if one.lineno <= line <= (one.end_lineno or one.lineno)), None)
        if index is None:
            break
        found.append((block, index))
        inner = _inner_blocks(block[index])
        block = next((each for each in inner if each[0].lineno <= line <= (each[-1].end_lineno or 0)), [])
    yield from reversed(found)


def _inner_blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
