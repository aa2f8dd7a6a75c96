"""The mend of a script that wants CUDA where this PyTorch has none: it asks, and falls back on the CPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.made import Made
from samedevice.explaining.mending.edits import as_fix, replace_node
from samedevice.explaining.syntax import call_name
from samedevice.findings import Fix

__all__ = ["asked_for"]


def asked_for(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`device = torch.device("cuda")` becomes `torch.device("cuda" if torch.cuda.is_available() else "cpu")`."""
    for frame in reversed(evidence.frames):
        constants = list(_devices_assigned(frame.source.tree))
        if len(constants) == 1:
            text = frame.source.text_of(constants[0])
            quote = text[0]
            asked = f"{text} if torch.cuda.is_available() else {quote}cpu{quote}"
            return as_fix(replace_node(frame.source, constants[0], asked))
    return None


def _devices_assigned(tree: ast.Module) -> Iterator[ast.Constant]:
    """The names of CUDA devices that variables are set to, alone or in `torch.device(…)`."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.Call) and call_name(value) == "device" and len(value.args) == 1:
            value = value.args[0]
        if isinstance(value, ast.Constant) and type(value.value) is str and value.value.partition(":")[0] == "cuda":
            yield value
