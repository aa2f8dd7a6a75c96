"""The mend that is always possible where both sides have an expression on the failing line: `.to(x.device)` there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import device_of, is_tensor
from samedevice.explaining.made import Made
from samedevice.explaining.mending.devices_in_scope import device_in_frame, device_of_neighbour, written_device
from samedevice.explaining.mending.edits import as_fix, enclosed, insert_before, replace_node
from samedevice.explaining.operands import Seen
from samedevice.explaining.routes import resolve
from samedevice.explaining.syntax import bindings_of
from samedevice.findings import Fix


def at_use(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`.to(x.device)` on the failing line: always possible where both sides have an expression there."""
    frame, side = evidence.frame, evidence.side
    if frame is None or side is None or side.expected in ("", "cpu"):
        return None
    device = (
        device_of_neighbour(evidence)
        or device_in_frame(frame, side.expected, frame.line)
        or written_device(frame, side.expected)
    )
    wrong = [one for one in side.wrong if one.node is not None]
    if device is None or len(wrong) != 1 or wrong[0].node is None:
        return None
    node = _what_lent(wrong[0].node, evidence.device, frame)
    route = resolve(node, frame)
    if route is not None and not is_tensor(route.value):
        return None
    if _is_written(evidence, wrong[0]):
        return _moved_before(node, device, frame)
    return as_fix(replace_node(frame.source, node, f"{enclosed(frame.source, node)}.to({device})"))


def _what_lent(node: ast.expr, device: str, frame: UserFrame) -> ast.expr:
    """The one tensor of an expression that lends it its device: `table` of `0.5 * table`."""
    if isinstance(node, ast.Call | ast.Subscript | ast.Name | ast.Attribute):
        return node
    parts = list(_outermost(node))
    named = [
        inner for inner in parts
        if (route := resolve(inner, frame)) is not None and is_tensor(route.value) and device_of(route.value) == device
    ]  # fmt: skip
    calls = [inner for inner in parts if isinstance(inner, ast.Call)]
    found = named or calls
    return found[0] if len(found) == 1 else node


def _outermost(node: ast.expr) -> Iterator[ast.expr]:
    """The names, look-ups and calls of an expression that are in no other one."""
    if isinstance(node, ast.Call | ast.Subscript | ast.Name | ast.Attribute):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _outermost(child)


def _is_written(evidence: Evidence, one: Seen) -> bool:
    """Whether the operation writes into the wrong operand: a moved copy of it would get what it is to hold."""
    name = evidence.fault.operation.partition(".")[0] if evidence.fault is not None else ""
    return name.endswith("_") and bool(evidence.seen) and evidence.seen[0] is one


def _moved_before(node: ast.expr, device: str, frame: UserFrame) -> Fix | None:
    """`shadow[k] = shadow[k].to(v.device)` before the line that writes into it, where that replaces it for good."""
    root = node
    while isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
        root = root.func.value
    statement, base = frame.statement, root
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    if (
        statement is None
        or not isinstance(base, ast.Name)
        or not isinstance(root, ast.Name | ast.Attribute | ast.Subscript)
    ):
        return None
    scope = frame.definition or frame.source.tree
    bindings = bindings_of(base.id, scope)
    if root is base and (any(binding.loop for binding in bindings) or not bindings):
        return None  # a loop's variable, a parameter or a global one: others still hold the old tensor
    text = frame.source.text_of(root)
    return as_fix(insert_before(frame.source, statement, f"{text} = {text}.to({device})"))
