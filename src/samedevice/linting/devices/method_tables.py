"""The methods of tensors and modules by what they mean for a device, and the devices that give methods their names.

Data only: every part that asks for `.cuda()` asks for its kin as well, here.
"""

from __future__ import annotations

__all__ = [
    "ACCELERATORS",
    "KEEPS_A_DIMENSION",
    "KEPT_BY_BATCH",
    "MEANINGFUL_ON_UNKNOWN",
    "MODULE_METHODS",
    "MOVES",
    "NEW",
    "NO_TENSOR",
    "NUMBERS",
    "REDUCTIONS",
    "SEVERAL",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ACCELERATORS = _words("cuda xpu mps hpu npu mtia ipu mlu musa")
"""The kinds of devices beside the CPU that compute.

Source: the device types of PyTorch's c10/core/DeviceType.h, 2.6 to 2.13, and the names of backends that live outside of
it (torch_npu, torch_mlu, torch_musa).
"""

MOVES = ACCELERATORS - {"mps"}
"""Methods that move a tensor or module to the accelerator of their name: PyTorch has none for MPS."""

MEANINGFUL_ON_UNKNOWN = MOVES | _words(
    """to cpu new_zeros new_ones new_empty new_full new_tensor type_as clone detach contiguous view reshape
    unsqueeze squeeze flatten transpose permute expand repeat float long int bool half double expand_as view_as
    index_select gather masked_fill masked_select matmul mm bmm add sub mul div scatter scatter_add index_add
    masked_fill_ scatter_ copy_ add_ sub_ mul_ div_ index_copy_ index_fill_"""
)
"""Methods that say something of where an object of unknown kind is."""

MODULE_METHODS = MOVES | _words(
    """to cpu train eval half float double bfloat16 type requires_grad_ zero_grad apply parameters named_parameters
    buffers named_buffers children named_children modules named_modules state_dict load_state_dict
    register_buffer register_parameter register_module add_module register_forward_hook
    register_forward_pre_hook share_memory compile forward __call__ _apply to_empty append extend insert keys
    values items register_full_backward_hook get_parameter get_buffer get_submodule extra_repr"""
)
"""What a module whose class is not seen has, whatever else it has."""

NO_TENSOR = _words(
    """item tolist size dim numel nelement ndimension stride storage_offset data_ptr element_size get_device
    is_contiguous is_floating_point is_complex is_signed is_shared is_pinned storage untyped_storage backward
    register_hook retain_grad has_names __len__ is_set_to is_inference __array__"""
)
"""Methods whose result is no tensor."""

KEEPS_A_DIMENSION = _words(
    """flatten nonzero view reshape unsqueeze expand repeat topk argsort sort view_as repeat_interleave unfold diagonal
    diag triu tril t transpose permute chunk split cumsum"""
)
"""Methods whose result has a dimension, whatever the tensor had."""

REDUCTIONS = _words(
    """sum mean max min argmax argmin any all prod norm std var median mode amax amin logsumexp nansum nanmean quantile
    count_nonzero"""
)
"""Methods whose result has no dimension where none is kept."""

NUMBERS = _words("trace dot vdot dist")
"""Methods whose result has no dimension, whatever they are given."""

NEW = _words("new_zeros new_ones new_empty new_full new_tensor")
"""Methods that make a tensor where theirs is."""

KEPT_BY_BATCH = _words(
    """sum mean max min argmax topk softmax log_softmax sigmoid tanh relu exp log sqrt pow abs clamp eq ne lt le gt ge
    t chunk split unbind norm sample rsample log_prob entropy get values items triu tril nonzero any all sort
    argsort cumsum expand_as bool byte type roll flip square neg eval train requires_grad_ half"""
)
"""Methods that objects other than tensors have, whose results are where the object is."""

SEVERAL = _words("split chunk unbind tensor_split hsplit vsplit dsplit")
"""Methods that give a tuple of tensors."""
