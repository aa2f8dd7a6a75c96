"""The mend where a moved copy is there under another name: that one is used."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence
from samedevice.explaining.diagnosing.moved_in_source import moved_elsewhere
from samedevice.explaining.live import device_of, is_tensor, shape_of
from samedevice.explaining.mending.edits import as_fix, replace_node
from samedevice.explaining.routes import resolve
from samedevice.findings import Fix

__all__ = ["moved_one"]


def moved_one(evidence: Evidence) -> Fix | None:
    """`ys[1]` in place of `xs[1]`, where `ys` holds at the same place a tensor of that shape on the right device.

    Args:
        evidence: what was read.

    Returns:
        None where there is no such tensor, or the failing line does not read the wrong one itself.
    """
    suspect, frame = evidence.suspect, evidence.frame
    route = suspect.route if suspect is not None else None
    wrong = [one.node for one in evidence.side.wrong if one.node is not None] if evidence.side is not None else []
    if route is None or frame is None or route.frame is not frame or len(wrong) != 1:
        return None
    other = moved_elsewhere(route, evidence.expected)
    read = [node for node in ast.walk(wrong[0]) if isinstance(node, ast.Name) and node.id == route.base]
    if other is None or len(read) != 1:
        return None
    meant = resolve(ast.parse(route.text.replace(route.base, other, 1), mode="eval").body, frame)
    if meant is None or not is_tensor(meant.value) or device_of(meant.value) != evidence.expected:
        return None
    return (
        as_fix(replace_node(frame.source, read[0], other)) if shape_of(meant.value) == shape_of(route.value) else None
    )
