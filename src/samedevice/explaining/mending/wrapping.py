"""Mends of what wraps a model or an optimizer: DataParallel, a traced program, a GradScaler."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import gradient_of, instance_dict, is_optimizer, is_tensor
from samedevice.explaining.made import Made
from samedevice.explaining.mending.devices_in_scope import device_in_frame
from samedevice.explaining.mending.edits import append, as_fix, enclosed, replace_node, with_keyword
from samedevice.explaining.reading import attribute, item, members
from samedevice.explaining.routes import resolve, search
from samedevice.explaining.syntax import arguments_of, call_name, keyword
from samedevice.findings import Fix

__all__ = ["stepped_with_gradients", "traced_there", "wrapped_on_first"]


def wrapped_on_first(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`nn.DataParallel(net, [0, 1])` becomes `nn.DataParallel(net, [0, 1]).to("cuda:0")`: it moves what it wraps."""
    device = evidence.recognised.places.get("device_ids[0]") if evidence.recognised is not None else None
    statement = made.statement if made is not None else None
    if made is None or statement is None or device is None:
        return _beginning_with(evidence)
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and call_name(node) == "DataParallel"]
    reordered = _beginning_with(evidence)
    if reordered is not None:
        return reordered
    frames = evidence.frames_of(made)
    if not calls or not frames:
        return None
    where = device_in_frame(frames[0], device, made.line) or f'"{device}"'
    where = f'"{device}"' if where.startswith("next(") else where
    return as_fix(append(made.source, calls[0], f".to({where})"))


def _beginning_with(evidence: Evidence) -> Fix | None:
    """`nn.DataParallel(net)` of a net on cuda:1 is told to begin there: `device_ids=[1, 0]`."""
    found = evidence.recognised.places.get("parameter", "") if evidence.recognised is not None else ""
    place = found.partition(":")[2]
    for route in evidence.models():
        ids = instance_dict(route.value).get("device_ids")
        if type(ids) is not list or any(type(each) is not int for each in ids) or place not in map(str, ids):
            continue
        calls = [
            node for node in ast.walk(route.frame.source.tree) if isinstance(node, ast.Call)
            if call_name(node) == "DataParallel" and len(node.args) == 1 and keyword(node, "device_ids") is None
        ]  # fmt: skip
        order = [int(place), *(each for each in ids if each != int(place))]
        if len(calls) == 1:
            return as_fix(with_keyword(route.frame.source, "device_ids", str(order), calls[0]), safe=False)
    return None


def stepped_with_gradients(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`scaler.step(opt_g)` becomes `scaler.step(opt_d)` where that is the one optimizer that has gradients."""
    frame = evidence.frame
    running = frame.running if frame is not None else None
    if frame is None or running is None:
        return None
    arguments = [node for _, node in arguments_of(running)]
    named = [node for node in arguments if (route := resolve(node, frame)) and is_optimizer(route.value)]
    others = [route for route in search(frame, is_optimizer) if _has_gradients(route.value)]
    unique = {id(route.value): route for route in reversed(others)}
    if len(named) != 1 or len(unique) != 1:
        return None
    (other,) = unique.values()
    return as_fix(replace_node(frame.source, named[0], other.text), safe=False)


def _has_gradients(optimizer: object) -> bool:
    groups = [group for _, _, group in members(attribute(optimizer, "param_groups"))]
    parameters = [each for group in groups for _, _, each in members(item(group, "params"))]
    return any(is_tensor(each) and gradient_of(each) is not None for each in parameters)


def traced_there(evidence: Evidence) -> Fix | None:
    """`torch.jit.trace(net, x)` becomes `torch.jit.trace(net.to(device), x.to(device))`: constants are made there."""
    for frame in reversed(evidence.frames):
        for node in ast.walk(frame.source.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("jit.trace") and len(node.args) == 2:
                fix = _traced_on(node, frame, evidence.expected)
                if fix is not None:
                    return fix
    return None


def _traced_on(call: ast.Call, frame: UserFrame, expected: str) -> Fix | None:
    source = frame.source
    here = source.function_at(call.lineno) is frame.definition or frame.definition is None
    device = (device_in_frame(frame, expected, call.lineno) if here else None) or f'"{expected.partition(":")[0]}"'
    device = f'"{expected.partition(":")[0]}"' if device.startswith("next(") else device
    first, second = call.args
    if not expected or isinstance(second, ast.Tuple | ast.List) or call.keywords:
        return None
    moved = (f"{enclosed(source, each)}.to({device})" for each in (first, second))
    return as_fix(replace_node(source, call, f"{source.exact_text(call.func)}({', '.join(moved)})"))
