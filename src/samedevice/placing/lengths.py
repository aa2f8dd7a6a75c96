"""Sequence lengths: the one kind of input that belongs on the CPU, where recurrent models pack sequences by them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from samedevice.placing.module_tensors import submodules
from samedevice.trees.path import Path
from samedevice.trees.replace import replace, scan

__all__ = ["are_lengths", "has_recurrence", "keep_lengths"]

_NAME = re.compile(r"(^|_)(len|lens|length|lengths|seqlen|seqlens)(_|$)")


def are_lengths(path: Path, tensor: torch.Tensor) -> bool:
    """Whether an input is lengths for `pack_padded_sequence`: a 1-D int64 CPU tensor that is called so.

    Args:
        path: its path; the last string in it is its name.
        tensor: the tensor.

    Returns:
        True for `batch["lengths"]` and `src_lens`, for example.

    Source: aten/src/ATen/native/PackedSequence.cpp: "'lengths' argument should be a 1D CPU int64 tensor".
    """
    if tensor.device.type != "cpu" or tensor.dtype != torch.int64 or tensor.dim() != 1:
        return False
    names = [step.key for step in path.steps() if isinstance(step.key, str)] or [path.root]
    return _NAME.search(names[-1].lower()) is not None


def has_recurrence(models: Iterable[nn.Module]) -> bool:
    """Whether any module in `models` is an RNN, LSTM or GRU, which take packed sequences."""
    return any(isinstance(module, nn.RNNBase) for model in models for _, module in submodules(model, ""))


def keep_lengths(
    before: Sequence[tuple[Path, torch.Tensor]], after: Sequence[tuple[Path, torch.Tensor]], moved: Any
) -> Any:
    """Moved data with its lengths put back where they were.

    Args:
        before: the tensors of the data before it was moved.
        after: those of the moved data, in the same order.
        moved: the moved data.

    Returns:
        `moved` itself where it holds no lengths.
    """
    back = {
        id(new): old
        for (path, old), (_, new) in zip(before, after, strict=True)
        if new is not old and are_lengths(path, old)
    }
    return replace(scan(moved), back) if back else moved
