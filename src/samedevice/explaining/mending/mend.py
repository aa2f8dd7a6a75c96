"""`mend`: which edit answers which cause. The sentences are complete on their own; edits come where they are sure.

An edit keeps what the program computes: it only says where. One that also changes what is saved, or where else the
tensor is used, is marked as not safe.
"""

from __future__ import annotations

from collections.abc import Callable

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.mending import at_making, moving, optimizers, registering
from samedevice.explaining.mending.at_use import at_use
from samedevice.explaining.where_made import Made
from samedevice.findings import Fix

__all__ = ["mend"]


def mend(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """How to mend the fault.

    Args:
        evidence: what was read.
        verdict: the cause.
        made: the line that left the tensor behind.

    Returns:
        None only where nothing useful can be said.
    """
    if verdict.fix is not None:
        return verdict.fix
    mender = _BY_MESSAGE.get(evidence.kind) or _MENDERS.get(verdict.slug, at_use)
    return mender(evidence, verdict, made) or at_use(evidence, verdict, made) or _SENTENCES.get(verdict.slug)


_MENDERS: dict[str, Callable[[Evidence, Verdict, Made | None], Fix | None]] = {
    "plain-attribute": registering.buffer,
    "plain-container": registering.module_list,
    "hardcoded-device": at_making.named_device,
    "factory-default-device": at_making.factory,
    "hidden-state": at_making.factory,
    "result-discarded": moving.kept,
    "input-not-moved": moving.moved_input,
    "model-not-moved": moving.moved_module,
    "second-model-not-moved": moving.moved_module,
    "criterion-not-moved": moving.moved_module,
    "module-created-in-forward": moving.made_late,
    "lengths-must-be-cpu": moving.on_cpu,
    "numpy-on-cuda": moving.on_cpu,
    "generator-device": at_making.generator,
    "checkpoint-map-location": at_making.map_location,
    "metric-state": at_making.accumulated,
    "stale-cache": at_making.guard,
    "optimizer-state": optimizers.synced,
    "optimizer-stale-params": at_making.stale_optimizer,
}

_BY_MESSAGE: dict[str, Callable[[Evidence, Verdict, Made | None], Fix | None]] = {
    "non-leaf": registering.leaf,
    "invalid-gradient": at_making.returned_gradient,
    "assigned-gradient": at_making.assigned_gradient,
    "assigned-gradient-index": at_making.assigned_gradient,
}

_SENTENCES = {
    "input-not-moved": Fix("move it first: x = x.to(device)"),
    "model-not-moved": Fix("move the model: model = model.to(device)"),
    "plain-attribute": Fix('make it a buffer: self.register_buffer("name", tensor, persistent=False)'),
    "plain-container": Fix("keep modules in nn.ModuleList or nn.ModuleDict, parameters in nn.ParameterList"),
    "result-discarded": Fix("keep the result: x = x.to(device)"),
    "factory-default-device": Fix("say where: device=x.device"),
    "hardcoded-device": Fix("use the script's own device instead of a fixed one"),
    "nested-batch": Fix("move the whole batch: batch = samedevice.move_to_device(batch, device)"),
    "index-device": Fix("bring the index to the tensor: index.to(x.device)"),
    "lengths-must-be-cpu": Fix("pass the lengths on the CPU: lengths.cpu()"),
    "generator-device": Fix("make the generator where it draws: torch.Generator(device=device)"),
    "numpy-on-cuda": Fix("bring it to the CPU first: x.detach().cpu().numpy()"),
    "checkpoint-map-location": Fix("say where to: torch.load(file, map_location=device)"),
    "module-created-in-forward": Fix("construct the module in __init__, so that it moves with the model and trains"),
    "split-model": Fix("bring it to the part that uses it: x.to(y.device)"),
    "dataparallel-misplaced": Fix("move the module to the first of device_ids before it is wrapped"),
    "global-tensor": Fix("pass the tensor in, or move it where it is used: table.to(x.device)"),
    "stale-cache": Fix("make the device part of what the cache asks for"),
    "second-model-not-moved": Fix("move the other model too: teacher = teacher.to(device)"),
    "hidden-state": Fix("make the state where the input is: torch.zeros(…, device=x.device)"),
    "metric-state": Fix("keep the running value where the results are, or bring the results to it"),
    "criterion-not-moved": Fix("move the loss with the model: criterion = criterion.to(device)"),
    "optimizer-state": Fix("bring the state to the parameters: samedevice.sync_optimizer(optimizer)"),
    "optimizer-stale-params": Fix("construct the optimizer after the model has its final parameters"),
    "scaler-or-scheduler": Fix("step the optimizer whose parameters the loss reaches"),
}
