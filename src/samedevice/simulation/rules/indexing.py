"""Indexing, filling and searching: which of index, mask, value and source may be elsewhere.

Each rule names its source in PyTorch; which operator follows which is in `operator_rules.py`.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from samedevice.simulation.calls import Call, refusal
from samedevice.simulation.rules.comparing import one_device

__all__ = [
    "index",
    "index_fill",
    "index_put",
    "masked_fill",
    "masked_index",
    "masked_index_put",
    "searchsorted",
    "segment_reduce",
]


def index(call: Call) -> torch.device | None:
    """Indices are on the CPU or with the tensor.

    Source: native/TensorAdvancedIndexing.cpp, check_indices_on_cpu_or_selfdevice.
    """
    device = call.device("self")
    for operand in call.of("indices"):
        if operand.device.type != "cpu" and operand.device != device:
            raise refusal(call, "index-device", operand, device=device)
    return one_device(call.without("indices"))


def masked_index(call: Call) -> torch.device | None:
    """Indexes, then fills where the mask says. Source: native/TensorAdvancedIndexing.cpp, _unsafe_masked_index."""
    index(call.only("self", "indices"))
    return masked_fill(call.only("self", "mask"))


def masked_index_put(call: Call) -> torch.device | None:
    """Fills the values where the mask says, then adds them. Source: as above, _unsafe_masked_index_put_accumulate."""
    values, mask = call.of("values")[0], call.of("mask")[0]
    if mask.device != values.device:
        raise refusal(call, "masked-fill-mask", mask, mask_device=mask.device, device=values.device)
    adding = replace(call, arguments={**call.arguments, "accumulate": True}, origin=call)
    return index_put(adding.only("self", "indices", "values"))


def index_put(call: Call) -> torch.device | None:
    """Indices may be anywhere; values are with the tensor, or 0-dim. Source: TensorAdvancedIndexing.cpp, make_info."""
    device = call.device("self")
    for value in call.of("values"):
        if device is None or value.device == device or value.tensor.dim() == 0:
            continue
        if call.arguments.get("accumulate") and device.type != "cpu":
            raise refusal(call, "index-value", value, device=device, other_device=value.device)
        one_device(call.only("self", "values"))
    return device


def index_fill(call: Call) -> torch.device | None:
    """The value is read as a number; tensor and index meet in an iterator. Source: TensorAdvancedIndexing.cpp."""
    return one_device(call.only("self", "index"))


def masked_fill(call: Call) -> torch.device | None:
    """Source: native/cuda/Indexing.cu, both overloads of masked_fill__cuda."""
    device, mask = call.device("self"), call.of("mask")[0]
    if call.of("value") and device is not None and device.type == "cpu":
        raise refusal(call, "masked-fill-value", call.of("self")[0])
    if mask.device != device:
        raise refusal(call, "masked-fill-mask", mask, mask_device=mask.device, device=device)
    return device


def searchsorted(call: Call) -> torch.device | None:
    """The sorter is keyword-only, with a check of its own. Source: native/BucketizationUtils.h."""
    boundaries = call.of("sorted_sequence")[0]
    for sorter in call.of("sorter"):
        if sorter.device != boundaries.device:
            raise refusal(call, "searchsorted-sorter", sorter, sorter_device=sorter.device, device=boundaries.device)
    return boundaries.device


def segment_reduce(call: Call) -> torch.device | None:
    """Keyword-only lengths, indices and offsets. Source: native/SegmentReduce.cpp, segment_reduce_kernel."""
    data = call.of("data")[0]
    for operand in call.operands:
        if operand.device != data.device:
            raise refusal(
                call, "plain-check", operand, check_text=f"data.get_device() == {operand.argument}_value.get_device()"
            )
    return data.device
