"""Causes that PyTorch's message settles, alone or with one look at the program."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.live import is_optimizer, tensors_of_module
from samedevice.explaining.made import Made
from samedevice.explaining.making import load_call
from samedevice.explaining.reading import attribute
from samedevice.texts import say

__all__ = ["judge"]

_REASONS = {
    "lengths-must-be-cpu": say("pack_padded_sequence reads the lengths on the CPU, and only there"),
    "generator-device": say("a generator draws for one kind of device only"),
    "numpy-on-cuda": say("NumPy reads the CPU's memory only"),
    "dataparallel-misplaced": say("DataParallel starts from the device of device_ids[0]"),
    "checkpoint-map-location": say("a checkpoint's tensors go back to the device that they were saved on"),
    "hidden-state": say("the recurrent state does not move with the module or its input"),
    "optimizer-state": say("the optimizer's own tensors are not where its parameters or its options want them"),
    "split-model": say("the parameters are spread over several devices"),
}
_JUDGED_ELSEWHERE = ("index-device",)


def judge(evidence: Evidence) -> Verdict | None:
    """The cause that the message names."""
    if evidence.kind == "no-inf-checks":
        return _no_inf_checks(evidence)
    if evidence.kind == "capturable":
        return _capturable(evidence)
    if evidence.kind == "no-cuda-build":
        return Verdict("hardcoded-device", say("this PyTorch has no CUDA: it was built for the CPU only"))
    if evidence.kind == "rng-state":
        return _rng_state(evidence)
    cause = evidence.recognised.cause if evidence.recognised is not None else None
    if cause is None or cause in _JUDGED_ELSEWHERE or cause == "other":
        return None
    if cause == "hidden-state" and (evidence.discarded is not None or _is_of_input(evidence)):
        return None
    return Verdict(cause, _REASONS.get(cause, say("the message says so")))


def _is_of_input(evidence: Evidence) -> bool:
    """Whether the state is where the layer is, and the input is what the message found elsewhere."""
    told = evidence.recognised.values if evidence.recognised is not None else {}
    places = (evidence.device, evidence.expected)
    return all(places) and (told.get("input_device"), told.get("hidden_device")) == places


def _capturable(evidence: Evidence) -> Verdict:
    """The flag that demands the step on the device: the line that set it is where the state went wrong."""
    for frame in reversed(evidence.frames):
        for node in ast.walk(frame.source.tree):
            if isinstance(node, ast.Assign) and any(_is_entry(target, "capturable") for target in node.targets):
                function = frame.source.function_at(node.lineno)
                made = Made(frame.file, node.lineno, getattr(function, "name", ""))
                return Verdict("optimizer-state", say("`capturable` was set while `step` is on the CPU"), made=made)
    return Verdict("optimizer-state", _REASONS["optimizer-state"])


def _is_entry(target: ast.expr, key: str) -> bool:
    return isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value == key


def _rng_state(evidence: Evidence) -> Verdict:
    """A generator's state is a ByteTensor on the CPU; a checkpoint that was sent to a device took it along."""
    if evidence.device in ("", "cpu"):
        return Verdict("other", say("a generator's state is a torch.ByteTensor on the CPU"))
    reason = say("a generator's state is read on the CPU, whatever device it draws for")
    made = evidence.made
    if made is not None and (made.event == "loaded" or load_call(made.statement) is not None):
        return Verdict(
            "checkpoint-map-location",
            say("map_location brought it to {device}; {reason}", device=evidence.device, reason=reason),
        )
    return Verdict("generator-device", reason)


def _no_inf_checks(evidence: Evidence) -> Verdict:
    """The scaler saw no gradient: the optimizer steps parameters that the loss does not reach."""
    optimizer = evidence.value
    if not is_optimizer(optimizer):
        return Verdict("scaler-or-scheduler", say("the scaler found no gradient among the optimizer's parameters"))
    held = {id(tensor) for group in attribute(optimizer, "param_groups") for tensor in group.get("params", ())}
    live = [tensor for route in evidence.models() for _, _, tensor in tensors_of_module(route.value)]
    if held and not any(id(tensor) in held for tensor in live):
        return Verdict(
            "optimizer-stale-params", say("none of the optimizer's parameters belongs to the model any more")
        )
    return Verdict("scaler-or-scheduler", say("no parameter of the optimizer got a gradient before the step"))
