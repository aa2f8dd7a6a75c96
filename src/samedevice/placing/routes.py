"""How a model is spread over devices and how its inputs get there, as far as the model itself tells."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from samedevice.placing.align_inputs import is_aligned
from samedevice.placing.judge import NO_ACCELERATOR
from samedevice.placing.module_tensors import instance_attributes, registered_tensors, submodules

__all__ = ["is_dispatched", "is_spread", "moves_inputs", "starts_from"]

_PARALLEL = (nn.DataParallel, nn.parallel.DistributedDataParallel)


def is_dispatched(model: nn.Module) -> bool:
    """Whether a device map spreads the model over several devices.

    Args:
        model: the module.

    Returns:
        True where `hf_device_map` names more than one device.

    Source: accelerate, `dispatch_model` sets `hf_device_map` and hooks, 1.15; transformers does so by `device_map=`.
    """
    maps = [instance_attributes(module).get("hf_device_map") for _, module in submodules(model, "")]
    return any(isinstance(found, dict) and len(set(map(str, found.values()))) > 1 for found in maps)


def is_spread(model: nn.Module) -> bool:
    """Whether a model is on several devices on purpose: by a device map, or with parameters on several accelerators.

    Args:
        model: the module.

    Returns:
        True where it should be left alone.
    """
    devices = {str(found.tensor.device) for found in registered_tensors(model, "") if found.kind == "parameter"}
    return is_dispatched(model) or len(devices.difference(NO_ACCELERATOR)) > 1


def moves_inputs(model: nn.Module) -> bool:
    """Whether the model moves what it is given: by `align_inputs`, dispatch hooks, DataParallel or DDP with device ids.

    Args:
        model: the module.

    Returns:
        True where inputs may be anywhere.

    Source: accelerate, `AlignDevicesHook.pre_forward`, 1.15; torch/nn/parallel, `scatter`, 2.6 to 2.13.
    """
    attributes = instance_attributes(model)
    hook: Any = attributes.get("_hf_hook")
    hooks = [hook, *instance_attributes(hook).get("hooks", ())]
    if any(instance_attributes(one).get("execution_device") is not None for one in hooks):
        return True
    return is_aligned(model) or (isinstance(model, _PARALLEL) and bool(attributes.get("device_ids")))


def starts_from(model: nn.Module) -> torch.device | None:
    """The device where DataParallel wants its module: the first of its device ids.

    Args:
        model: the module.

    Returns:
        The device; None for other modules, and for a DataParallel without devices.

    Source: torch/nn/parallel/data_parallel.py, `src_device_obj`, 2.6 to 2.13.
    """
    if isinstance(model, nn.DataParallel) and instance_attributes(model).get("device_ids"):
        return instance_attributes(model).get("src_device_obj")
    return None
