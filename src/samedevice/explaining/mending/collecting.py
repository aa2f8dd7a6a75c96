"""Mends of results that a list collects for NumPy: each leaves its device when it is put there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import shape_of
from samedevice.explaining.mending.edits import as_fix, enclosed, replace_node
from samedevice.explaining.routes import resolve
from samedevice.explaining.syntax import call_name
from samedevice.findings import Fix

__all__ = ["collected_on_cpu"]


def collected_on_cpu(node: ast.expr, frame: UserFrame, copy: str) -> Fix | None:
    """`losses.append(loss.item())` for numbers, `.cpu()` for larger tensors; where others read the list, at the use.

    Args:
        node: the list, as the failing line names it.
        frame: the frame of that line.
        copy: what brings one of its tensors to the CPU, e.g. ".detach().cpu()".
    """
    source = frame.source
    name = source.text_of(node)
    route = resolve(node, frame)
    numbers = route is not None and all(shape_of(part) == () for part in route.value)
    copy = ".item()" if numbers else copy
    scope = frame.definition or source.tree
    added = list(_added(name, scope))
    uses = [each for each in ast.walk(scope) if isinstance(each, ast.expr) and source.text_of(each) == name]
    read = [each for each in uses if isinstance(getattr(each, "ctx", None), ast.Load)]
    appends = [each for each in added if each is not None]
    if len(appends) == 1 and len(added) == 1 and len(read) <= 2:
        value = appends[0]
        if numbers and isinstance(value, ast.Call) and call_name(value) == "detach":
            kept = value.func.value if isinstance(value.func, ast.Attribute) else value
            return as_fix(replace_node(source, value, f"{enclosed(source, kept)}{copy}"))
        return as_fix(replace_node(source, value, f"{enclosed(source, value)}{copy}"))
    return as_fix(replace_node(source, node, f"[each{copy} for each in {name}]"))


def _added(name: str, scope: ast.AST) -> Iterator[ast.expr | None]:
    """What is put into the list `name` in `scope`; None for what is put there in another way than one by one."""
    for each in ast.walk(scope):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and ast.unparse(each.func.value) == name:
            if each.func.attr in ("append", "extend", "insert"):
                yield each.args[0] if each.func.attr == "append" and len(each.args) == 1 else None
        elif isinstance(each, ast.AugAssign) and ast.unparse(each.target) == name:
            items = each.value.elts if isinstance(each.value, ast.List) else []
            yield items[0] if len(items) == 1 else None
