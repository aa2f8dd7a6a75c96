"""PyTorch's names by what they mean for a device. Data only."""

from __future__ import annotations

import re

__all__ = ["DRESSINGS", "FACTORIES", "FACTS", "FROM_DATA", "LAYER_OPERATORS", "LOSS", "MOVES"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MOVES = _words("to cuda cpu xpu mps type_as")
"""Methods that bring a tensor or module elsewhere."""

DRESSINGS = _words(
    """float double half bfloat16 long int bool short byte char type detach view reshape unsqueeze squeeze expand
    expand_as transpose permute t contiguous flatten unflatten narrow select chunk split unbind view_as requires_grad_
    repeat swapaxes movedim clone flip diagonal tril triu neg abs values indices tile"""
)
"""Methods whose result is the tensor in other clothes: its device is the tensor's, and so is whose fault it is."""

FACTS = _words(
    """len int float bool str range isinstance type shape device dtype ndim is_cuda size dim numel item tolist
    get_device stride print format id itemsize nelement"""
)
"""What only asks a tensor something and gives back no tensor."""

FACTORIES = _words(
    """zeros ones empty full rand randn randint randperm arange linspace logspace eye tril_indices triu_indices
    hann_window hamming_window kaiser_window bartlett_window blackman_window range normal fftfreq rfftfreq
    scalar_tensor"""
)
"""Functions of torch that make a tensor of no other, on the default device unless told."""

FROM_DATA = _words(
    """tensor as_tensor from_numpy asarray frombuffer Tensor FloatTensor LongTensor BoolTensor IntTensor DoubleTensor
    ByteTensor HalfTensor sparse_coo_tensor to_tensor"""
)
"""Functions that make a tensor of other data, on the CPU or the default device unless told."""

LAYER_OPERATORS = _words(
    """addmm mm linear convolution conv cudnn_convolution slow_conv2d_forward batch_norm native_batch_norm
    cudnn_batch_norm native_layer_norm index_select embedding lstm gru"""
)
"""Operators that a layer calls with its own parameters."""

LOSS = re.compile(
    r"(?<![A-Za-z])loss(es)?(?![a-z])|Loss(es)?(?![a-z])|LOSS(ES)?(?![a-z])|[a-z]{3}loss$|[Cc]riterion|CRITERION"
)
"""A class called like a loss: `FocalLoss`, `loss_fn`, `Focalloss`, no `Glossary`, `Blossom` or `Lossless`."""
