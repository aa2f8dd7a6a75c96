"""The mend that is always possible where both sides have an expression on the failing line: `.to(x.device)` there."""

from __future__ import annotations

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.live import is_tensor
from samedevice.explaining.mending.devices_in_scope import device_in_frame, device_of_neighbour
from samedevice.explaining.mending.edits import as_fix, enclosed, replace_node
from samedevice.explaining.routes import resolve
from samedevice.explaining.where_made import Made
from samedevice.findings import Fix


def at_use(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`.to(x.device)` on the failing line: always possible where both sides have an expression there."""
    frame, side = evidence.frame, evidence.side
    if frame is None or side is None or side.expected in ("", "cpu"):
        return None
    device = device_of_neighbour(evidence) or device_in_frame(frame, side.expected, frame.line)
    wrong = [one for one in side.wrong if one.node is not None]
    if device is None or len(wrong) != 1 or wrong[0].node is None:
        return None
    node = wrong[0].node
    route = resolve(node, frame)
    if route is not None and not is_tensor(route.value):
        return None
    return as_fix(replace_node(frame.source, node, f"{enclosed(frame.source, node)}.to({device})"))
