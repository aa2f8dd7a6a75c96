"""`mend`: which edit answers which cause. The sentences are complete on their own; edits come where they are sure.

An edit keeps what the program computes: it only says where. One that also changes what is saved, or where else the
tensor is used, is marked as not safe.
"""

from __future__ import annotations

from collections.abc import Callable

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.diagnosing.traced import is_traced
from samedevice.explaining.live import is_module
from samedevice.explaining.made import Made
from samedevice.explaining.mending import (
    at_making,
    generators,
    losses,
    moving,
    optimizers,
    registering,
    without_cuda,
    wrapping,
)
from samedevice.explaining.mending.at_use import at_use
from samedevice.explaining.mending.ordering import after_the_move
from samedevice.findings import Fix
from samedevice.texts import say

__all__ = ["advice", "mend"]


def mend(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """How to mend the fault.

    Args:
        evidence: what was read.
        verdict: the cause.
        made: the line that left the tensor behind.

    Returns:
        None only where nothing useful can be said.
    """
    if is_traced(evidence.error):
        return wrapping.traced_there(evidence) or Fix(
            say("trace the module on the device that it will run on, or script it")
        )
    mender = _BY_MESSAGE.get(evidence.kind) or _MENDERS.get(verdict.slug, at_use)
    copied = verdict.slug in _MADE_OF_A_MODEL or (made is not None and made.event == "copied")
    reordered = after_the_move(evidence) if copied else None
    fix = reordered or mender(evidence, verdict, made) or at_use(evidence, verdict, made)
    return fix or _SENTENCES_BY_MESSAGE.get(evidence.kind) or _SENTENCES.get(_kind_of_advice(evidence, verdict))


def advice(slug: str) -> Fix | None:
    """How faults of the cause `slug` are mended, in a sentence; None for the cause `other`."""
    return _SENTENCES.get(slug)


def _kind_of_advice(evidence: Evidence, verdict: Verdict) -> str:
    """The cause whose sentence helps: an object that is no module has no buffers."""
    home = evidence.home()
    plain = verdict.slug == "plain-attribute" and home is not None and not is_module(home.owner)
    return "global-tensor" if plain else verdict.slug


_MADE_OF_A_MODEL = ("second-model-not-moved", "optimizer-state", "metric-state", "plain-attribute", "plain-container")
"""Causes of tensors that may be copies of a model's, taken before it moved."""

_MENDERS: dict[str, Callable[[Evidence, Verdict, Made | None], Fix | None]] = {
    "plain-attribute": registering.buffer,
    "plain-container": registering.module_list,
    "hardcoded-device": at_making.named_device,
    "factory-default-device": at_making.factory,
    "hidden-state": at_making.recurrent,
    "result-discarded": moving.kept,
    "input-not-moved": moving.moved_input,
    "model-not-moved": moving.moved_module,
    "second-model-not-moved": moving.moved_module,
    "criterion-not-moved": losses.moved_loss,
    "module-created-in-forward": moving.made_late,
    "lengths-must-be-cpu": moving.on_cpu,
    "numpy-on-cuda": moving.on_cpu,
    "generator-device": generators.generator,
    "checkpoint-map-location": at_making.map_location,
    "metric-state": at_making.accumulated,
    "nested-batch": moving.in_own_move,
    "split-model": moving.to_next_part,
    "stale-cache": at_making.guard,
    "optimizer-state": optimizers.synced,
    "optimizer-stale-params": at_making.stale_optimizer,
    "dataparallel-misplaced": wrapping.wrapped_on_first,
    "scaler-or-scheduler": wrapping.stepped_with_gradients,
}

_BY_MESSAGE: dict[str, Callable[[Evidence, Verdict, Made | None], Fix | None]] = {
    "non-leaf": registering.leaf,
    "invalid-gradient": at_making.returned_gradient,
    "assigned-gradient": at_making.assigned_gradient,
    "assigned-gradient-index": at_making.assigned_gradient,
    "rng-state": moving.on_cpu,
    "no-cuda-build": without_cuda.asked_for,
}

_SENTENCES_BY_MESSAGE = {
    "no-cuda-build": Fix(
        say(
            'ask first: device = torch.device("cuda" if torch.cuda.is_available() else "cpu"), and '
            "move with .to(device); or install a PyTorch that is built for CUDA"
        )
    ),
    "rng-state": Fix(say("pass the state on the CPU: a generator's state is a ByteTensor there, with `.cpu()`")),
}

_SENTENCES = {
    "input-not-moved": Fix(say("move it to the model's device before it is used, with `.to(device)`")),
    "model-not-moved": Fix(say("move the model before it is used, with `.to(device)`")),
    "plain-attribute": Fix(say("make it a buffer, with `self.register_buffer(name, tensor, persistent=False)`")),
    "plain-container": Fix(say("keep modules in nn.ModuleList or nn.ModuleDict, parameters in nn.ParameterList")),
    "result-discarded": Fix(say("keep the result of `.to(device)`: a tensor does not move in place")),
    "factory-default-device": Fix(say("say where it is to be made, with `device=`")),
    "hardcoded-device": Fix(say("use the script's own device instead of a fixed one")),
    "nested-batch": Fix(say("move the whole batch, with `samedevice.move_to_device(batch, device)`")),
    "index-device": Fix(say("bring the index to the device of the tensor that it reads")),
    "lengths-must-be-cpu": Fix(say("pass the lengths on the CPU, with `.cpu()`")),
    "generator-device": Fix(say("make the generator where it draws, with `torch.Generator(device=device)`")),
    "numpy-on-cuda": Fix(say("bring it to the CPU first, with `.detach().cpu().numpy()`")),
    "checkpoint-map-location": Fix(say("say where to, with `torch.load(file, map_location=device)`")),
    "module-created-in-forward": Fix(
        say("construct the module in __init__, so that it moves with the model and trains")
    ),
    "split-model": Fix(say("bring it to the device of the part that uses it")),
    "dataparallel-misplaced": Fix(say("move the module to the first of device_ids before it is wrapped")),
    "global-tensor": Fix(say("pass the tensor in, or move it where it is used")),
    "stale-cache": Fix(say("make the device part of what the cache asks for")),
    "second-model-not-moved": Fix(say("move the other model too, with `.to(device)`")),
    "hidden-state": Fix(say("make the state where the input is, with `device=`")),
    "metric-state": Fix(say("keep the running value where the results are, or bring the results to it")),
    "criterion-not-moved": Fix(say("move the loss with the model, with `.to(device)`")),
    "optimizer-state": Fix(say("bring the state to the parameters, with `samedevice.sync_optimizer(optimizer)`")),
    "optimizer-stale-params": Fix(say("construct the optimizer after the model has its final parameters")),
    "scaler-or-scheduler": Fix(say("step the optimizer whose parameters the loss reaches")),
}
