"""Checks that PyTorch makes in functions, above the operators that a dispatch mode sees.

A composite function such as `torch.lstm` or `torch.stft` compares devices itself and is gone when its operators arrive;
others take another path on a device than on the CPU (`rms_norm`, the fused RNN cells), so that the operators that
arrive here are not those that would refuse there. For these the check stands at the function.

    for patch in patches(device_of): patch.install()      # what `simulate` does
    check_call("stft", (x, 400), {"window": window}, device_of)

Each rule names its source in PyTorch, seen from 2.6 to 2.14. No function is run or changed here.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import _VF

from samedevice.simulation.calls import Call, DeviceOf, Operand, are_mixed, tensors_in
from samedevice.simulation.patching import Patch, Undoable
from samedevice.simulation.replacing import known_to_scripts
from samedevice.simulation.rules import functions, networks, recurrent, sparse

__all__ = ["check_call", "patches"]

_Rule = Callable[[Call], "torch.device | None"]
_Moved = Callable[[Call], Mapping[str, torch.device]]


@dataclass(frozen=True, slots=True)
class _Function:
    rule: _Rule
    parameters: tuple[str, ...]
    """The names of its positional parameters; more than are named here do not hold tensors."""
    owners: tuple[Any, ...]
    """Where code finds it: modules and classes."""
    operation: str = ""
    """The operator that a person would name; empty: "aten::" and the function's name."""
    always: bool = False
    """Asked even where all tensors share a device."""
    moved: _Moved | None = None
    """Which arguments the function moves by itself; here C++ takes all for the CPU's and moves nothing."""


def _nothing(call: Call) -> None:
    """For functions that compare nothing and move arguments."""


_Tensor = torch.Tensor
_FUNCTIONS: Mapping[str, _Function] = {
    "lstm": _Function(recurrent.recurrent, ("input", "hx", "params"), (torch, _VF)),
    "gru": _Function(recurrent.recurrent, ("input", "hx", "params"), (torch, _VF)),
    "rnn_tanh": _Function(recurrent.recurrent, ("input", "hx", "params"), (torch, _VF)),
    "rnn_relu": _Function(recurrent.recurrent, ("input", "hx", "params"), (torch, _VF)),
    "lstm_cell": _Function(recurrent.cell, recurrent.CELL_PARAMETERS, (torch, _VF)),
    "gru_cell": _Function(recurrent.cell, recurrent.CELL_PARAMETERS, (torch, _VF)),
    "batch_norm": _Function(functions.batch_norm, functions.NORM_PARAMETERS, (torch,), "aten::native_batch_norm"),
    "instance_norm": _Function(functions.batch_norm, functions.NORM_PARAMETERS, (torch,), "aten::native_batch_norm"),
    "ctc_loss": _Function(_nothing, functions.CTC_PARAMETERS, (torch,), moved=functions.ctc_moved),
    "scaled_dot_product_attention": _Function(
        networks.attention, ("query", "key", "value", "attn_mask"), (torch.nn.functional, torch._C._nn)
    ),
    "rms_norm": _Function(functions.rms_norm, ("input", "normalized_shape", "weight"), (torch, _VF)),
    "_weight_norm": _Function(
        functions.weight_norm, ("v", "g"), (torch, _VF, sys.modules["torch.nn.utils.weight_norm"])
    ),
    "take_along_dim": _Function(functions.take_along_dim, ("self", "indices"), (torch, _Tensor)),
    "meshgrid": _Function(functions.meshgrid, ("tensors",), (_VF,)),
    "cartesian_prod": _Function(functions.meshgrid, ("tensors",), (_VF,)),
    "tensor_split": _Function(
        functions.tensor_split, ("self", "tensor_indices_or_sections"), (torch, _Tensor), always=True
    ),
    "quantile": _Function(functions.quantile, ("self", "q"), (torch, _Tensor)),
    "nanquantile": _Function(functions.quantile, ("self", "q"), (torch, _Tensor)),
    "stft": _Function(functions.window, ("self", "n_fft", "hop_length", "win_length", "window"), (_VF,)),
    "istft": _Function(
        functions.window, ("self", "n_fft", "hop_length", "win_length", "window"), (torch, _Tensor, _VF)
    ),
    "inner": _Function(functions.inner, ("self", "other"), (torch, _Tensor)),
    "multi_dot": _Function(functions.multi_dot, ("tensors",), (torch.linalg,), "aten::linalg_multi_dot"),
    "chain_matmul": _Function(functions.multi_dot, ("matrices",), (_VF,)),
    "gradient": _Function(functions.gradient, ("self", "spacing"), (torch,)),
    "matrix_rank": _Function(functions.matrix_rank, ("input", "tol"), (torch.linalg,), "aten::linalg_matrix_rank"),
    "norm": _Function(functions.result_with_input("linalg.norm", swapped=True), ("A",), (torch.linalg,)),
    "matrix_norm": _Function(functions.result_with_input("linalg.matrix_norm", swapped=True), ("A",), (torch.linalg,)),
    "cond": _Function(functions.result_with_input("linalg.cond"), ("A",), (torch.linalg,)),
    "pinv": _Function(functions.result_with_input("linalg.pinv"), ("A",), (torch.linalg,)),
    "matrix_power": _Function(functions.result_with_input("matrix_power"), ("A",), (torch.linalg, torch)),
    "tensorinv": _Function(functions.result_with_input("tensorinv"), ("A",), (torch.linalg,)),
    "tensorsolve": _Function(functions.result_with_input("tensorsolve"), ("A", "B"), (torch.linalg,)),
    "vecdot": _Function(functions.result_with_input("linalg.vecdot", swapped=True), ("x", "y"), (torch.linalg,)),
    "ndtr": _Function(functions.distribution_out, ("self",), (torch.special,)),
    "tensordot": _Function(functions.tensordot, ("self", "other"), (_VF,)),
    "smm": _Function(sparse.sum_of_product, ("mat1", "mat2"), (torch,)),
    "sspaddmm": _Function(sparse.sum_of_product, ("self", "mat1", "mat2"), (torch,)),
    "mm": _Function(sparse.product, ("mat1", "mat2"), (torch.sparse,), "aten::_sparse_mm"),
    **{
        f"sparse_{layout}_tensor": _Function(
            functions.compressed, ("crow_indices", "col_indices", "values"), (torch,), f"aten::sparse_{layout}_tensor"
        )
        for layout in ("csr", "bsr")
    },
    **{
        f"sparse_{layout}_tensor": _Function(
            functions.compressed, ("ccol_indices", "row_indices", "values"), (torch,), f"aten::sparse_{layout}_tensor"
        )
        for layout in ("csc", "bsc")
    },
    "sparse_compressed_tensor": _Function(
        functions.compressed_of_any_layout, ("compressed_indices", "plain_indices", "values"), (torch,)
    ),
}


def check_call(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], device_of: DeviceOf) -> None:
    """Decide one call of a function as the real device would.

    Args:
        name: The function's own name, e.g. "lstm" or "take_along_dim"; any other passes.
        args: Its positional arguments; a method's tensor comes first.
        kwargs: Its keyword arguments.
        device_of: Where a tensor lives on the simulated machine.

    Raises:
        RuntimeError: or the type that PyTorch raises there.
    """
    function = _FUNCTIONS.get(name)
    if function is not None and (function.always or are_mixed((*args, *kwargs.values()), device_of)):
        function.rule(_call_of(name, function, args, kwargs, device_of))


def patches(device_of: DeviceOf) -> Iterator[Undoable]:
    """The functions with their checks put before them, to be installed while a simulation runs.

    Args:
        device_of: Where a tensor lives on the simulated machine.

    Yields:
        The changes for each place where code finds the function.
    """
    for name, function in _FUNCTIONS.items():
        for owner in function.owners:
            original = getattr(owner, name, None)
            if original is not None:
                checked = _checked(name, original, device_of)
                yield Patch(owner, name, checked)
                yield from known_to_scripts(original, checked)


def _checked(name: str, original: Any, device_of: DeviceOf) -> Any:
    moved = _FUNCTIONS[name].moved
    is_recurrent = _FUNCTIONS[name].rule is recurrent.recurrent

    def checked(*args: Any, **kwargs: Any) -> Any:
        check_call(name, args, kwargs, device_of)
        if moved is not None and are_mixed((*args, *kwargs.values()), device_of):
            args, kwargs = _with_moves(name, moved, args, kwargs, device_of)
        if is_recurrent and are_mixed(args, device_of):
            args = recurrent.filled(args)
        return original(*args, **kwargs)

    try:
        return functools.wraps(original)(checked)
    except (AttributeError, TypeError):
        return checked


def _with_moves(
    name: str, moved: _Moved, args: tuple[Any, ...], kwargs: dict[str, Any], device_of: DeviceOf
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    function = _FUNCTIONS[name]
    targets = moved(_call_of(name, function, args, kwargs, device_of))
    names = dict(enumerate(function.parameters))
    return (
        tuple(value.to(targets[names[i]]) if names.get(i) in targets else value for i, value in enumerate(args)),
        {key: value.to(targets[key]) if key in targets else value for key, value in kwargs.items()},
    )


def _call_of(
    name: str, function: _Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], device_of: DeviceOf
) -> Call:
    arguments = dict(zip(function.parameters, args, strict=False)) | dict(kwargs)
    if function.rule is recurrent.recurrent:
        arguments = recurrent.recurrent_arguments(args)
    elif function.rule is functions.meshgrid and not isinstance(args[0], list | tuple):
        arguments["tensors"] = args
    arguments = {functions.ALIASES.get(key, key): value for key, value in arguments.items()}
    operands = tuple(
        Operand(
            argument, tensor, device_of(tensor), output=argument == "out", is_out=argument == "out", position=position
        )
        for argument, value in arguments.items()
        for position, tensor in tensors_in(value)
    )
    return Call(function.operation or f"aten::{name}", operands, arguments)
