"""Mends of losses: their weights go where the logits are, at the construction or with the loss as a whole."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.flow import binding_of
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import is_tensor, same_storage
from samedevice.explaining.made import Made
from samedevice.explaining.mending.devices_in_scope import device_in_frame
from samedevice.explaining.mending.edits import as_fix, enclosed, replace_node
from samedevice.explaining.mending.moving import moved_module
from samedevice.explaining.mending.ordering import variables_of
from samedevice.explaining.mending.registering import buffer
from samedevice.explaining.routes import resolve
from samedevice.explaining.syntax import arguments_of
from samedevice.findings import Fix

__all__ = ["moved_loss"]


def moved_loss(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`FocalLoss(weights)` becomes `FocalLoss(weights.to(device))` where it keeps them as a plain attribute."""
    home = evidence.home()
    if home is None or home.kind != "attribute":
        return moved_module(evidence, verdict, made)
    passed = _passed(evidence)
    return passed or buffer(evidence, verdict, made)


def _passed(evidence: Evidence) -> Fix | None:
    """The argument of the construction that is this very tensor, moved there."""
    home = evidence.home()
    for frame, name in variables_of(home.owner if home is not None else None, evidence):
        binding = binding_of(name, frame)
        node = binding.node if binding is not None else None
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        device = device_in_frame(frame, evidence.expected, node.lineno)
        for _, argument in arguments_of(node.value) if device is not None else ():
            if _is_it(argument, frame, evidence):
                text = f"{enclosed(frame.source, argument)}.to({device})"
                return as_fix(replace_node(frame.source, argument, text))
    return None


def _is_it(argument: ast.expr, frame: UserFrame, evidence: Evidence) -> bool:
    route = resolve(argument, frame)
    return route is not None and is_tensor(route.value) and same_storage(route.value, evidence.value)
