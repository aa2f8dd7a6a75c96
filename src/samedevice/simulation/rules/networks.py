"""Attention, packed sequences and CTC.

Each rule names its source in PyTorch; which operator follows which is in `operator_rules.py`.
"""

from __future__ import annotations

import torch

from samedevice.simulation.calls import Call, Operand, refusal
from samedevice.simulation.rules.comparing import compared_refusal, no_kernel_refusal
from samedevice.simulation.type_texts import scalar_type

__all__ = ["attention", "ctc_loss", "packed_lengths"]


def attention(call: Call) -> torch.device | None:
    """Query, key and value first, then the mask as the chosen kernel takes it.

    Source: native/transformers/attention.cpp, validate_sdpa_input; transformers/cuda/sdp_utils.cpp. Without a GPU to
    ask, the kernel is the one that a recent NVIDIA GPU takes.
    """
    query, key, value = (call.of(argument)[0] for argument in ("query", "key", "value"))
    if not query.device == key.device == value.device:
        raise refusal(
            call,
            "attention",
            query_device=query.device,
            key_device=key.device,
            value_device=value.device,
        )
    for mask in call.of("attn_mask"):
        if mask.device == query.device:
            continue
        if query.device.type == "cpu":
            raise no_kernel_refusal(call, mask, "aten::_scaled_dot_product_flash_attention_for_cpu")
        kernel = _attention_kernel(query.tensor)
        if kernel == "math":
            raise refusal(call, "tensor-iterator", mask, device=query.device, other_device=mask.device)
        blamed = Operand("attn_bias", mask.tensor, mask.device)
        raise compared_refusal(call, f"wrapper_CUDA___scaled_dot_product_{kernel}_attention", blamed, query.device)
    return query.device


def _attention_kernel(query: torch.Tensor) -> str:
    """CuDNN's for half precision, the memory-efficient one, or none where a row is not aligned to 16 bytes."""
    width = query.shape[-1] if query.dim() else 0
    if query.dtype in (torch.float16, torch.bfloat16):
        return "cudnn" if width % 8 == 0 else "math"
    return "efficient" if query.dtype is torch.float32 and width % 4 == 0 else "math"


def packed_lengths(call: Call) -> torch.device | None:
    """Lengths are on the CPU whatever the input. Source: native/PackedSequence.cpp, _pack_padded_sequence."""
    for lengths in call.of("lengths"):
        if lengths.device.type != "cpu":
            raise refusal(
                call,
                "lengths",
                lengths,
                dimension_count=lengths.tensor.dim(),
                device=lengths.device,
                dtype_type=scalar_type(lengths.tensor.dtype),
            )
    return None


def ctc_loss(call: Call) -> torch.device | None:
    """Targets are moved to log_probs, lengths are read on the CPU. Source: native/cuda/LossCTC.cu, ctc_loss_gpu."""
    return call.device("log_probs")
