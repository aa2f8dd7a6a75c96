"""What several smells ask of a call that moves a tensor."""

from __future__ import annotations

import ast
import re

from samedevice.linting.devices.method_tables import ACCELERATORS, MOVES

__all__ = ["is_move", "is_to_cpu", "keyword", "target_of"]

_DEVICE = re.compile(rf"(?:{'|'.join(sorted(ACCELERATORS))}|cpu)(?::\d+)?")


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((each.value for each in call.keywords if each.arg == name), None)


def target_of(call: ast.Call) -> ast.expr | None:
    """What `.to(…)` is given as a device; None where it may be a dtype or another tensor."""
    first = call.args[0] if call.args else keyword(call, "device")
    return first if first is not None and _is_device(first) else None


def _is_device(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _DEVICE.fullmatch(node.value) is not None
    if isinstance(node, ast.Name):
        return node.id in ("device", "dev") or node.id.endswith("_device") or node.id.startswith("device_")
    if isinstance(node, ast.Attribute):
        return node.attr == "device" or node.attr.endswith("_device")
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name) and _called(node) == "device"


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def is_to_cpu(call: ast.AST) -> bool:
    """`x.cpu()` or `x.to("cpu")`."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "cpu":
        return True
    target = target_of(call) if call.func.attr == "to" else None
    return isinstance(target, ast.Constant) and target.value == "cpu"


def is_move(call: ast.AST) -> bool:
    """`x.cuda()`, one of its kin, or `x.to(device)`, where the device is none that is known to be the CPU."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or is_to_cpu(call):
        return False
    return call.func.attr in MOVES or (call.func.attr == "to" and target_of(call) is not None)
