"""`torch.autocast("cuda")` on tensors that are CPU tensors in truth: casts those that say they are on the device, as
its autocast would.

PyTorch's own autocast kernels ask C++ where a tensor is. So the autocast key of the simulated kind, which no CPU
tensor carries, is included in dispatching while autocast is on, and its kernels are replaced by ones that ask the
label. Which operators are cast, and how, is read from PyTorch's header of the installed version. Autocast of the CPU
is the matter of `amp_host.py`. `GradScaler`, `custom_fwd` and the flags themselves are PyTorch's Python code and need
nothing but a machine that says that CUDA is available.

Source: aten/src/ATen/autocast_mode.h (`AT_FORALL_LOWER_PRECISION_FP` and following) and autocast_mode.cpp, 2.6 to 2.14.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from samedevice.simulation.amp_host import HostAutocast
from samedevice.simulation.labels import device_of
from samedevice.simulation.patching import Patch, Undoable

if TYPE_CHECKING:
    from samedevice.simulation.machine import Machine

__all__ = ["patches", "policies"]

_KEYS = {
    "cuda": "AutocastCUDA",
    "xpu": "AutocastXPU",
    "mps": "AutocastMPS",
    "hpu": "AutocastHPU",
    "mtia": "AutocastMTIA",
    "npu": "AutocastPrivateUse1",
}
_MACRO = re.compile(r"#define AT_FORALL_(\w+)\(_\)((?:[^\n]*\\\n)*[^\n]*\n)")
_ENTRY = re.compile(r"\b_\(\s*(\w+)\s*(?:,\s*(\w+)\s*)?\)")
_WIDTHS = {torch.float16: 2, torch.bfloat16: 2, torch.float32: 4}

Kernel = Callable[..., Any]


def patches(machine: Machine) -> Iterator[Undoable]:
    """Autocast of the simulated kind.

    Args:
        machine: what is simulated.

    Yields:
        The changes, none of them installed yet.
    """
    key = _KEYS.get(machine.kind)
    if key is None or not hasattr(torch._C.DispatchKey, key):
        return
    host = HostAutocast(machine.kind)
    yield host
    yield _Kernels(machine.kind, key)
    yield Patch(torch, "set_autocast_enabled", _switching(machine.kind, getattr(torch._C.DispatchKey, key), host))


def _switching(kind: str, key: Any, host: HostAutocast) -> Callable[..., None]:
    """`torch.set_autocast_enabled`, which also includes the key in this thread's dispatching."""
    original = torch.set_autocast_enabled

    @functools.wraps(original)
    def set_autocast_enabled(*arguments: Any) -> None:
        original(*arguments)
        # One argument: the old form, which means CUDA.
        if (len(arguments) == 1 and kind == "cuda") or arguments[0] == kind:
            torch._C._dispatch_tls_set_dispatch_key_included(key, bool(arguments[-1]))
        elif arguments[0] == "cpu" and arguments[-1]:
            host.use()

    return set_autocast_enabled


class _Kernels:
    """The kernels of one autocast key, registered while the simulation runs."""

    def __init__(self, kind: str, key: str) -> None:
        self._kind = kind
        self._key = key
        self._library: Any = None
        self._fallback: Any = None

    def install(self) -> None:
        """Register them; once more after PyTorch imported something, and then perhaps within autocast."""
        self._library = torch.library.Library("aten", "IMPL")
        key = getattr(torch._C.DispatchKey, self._key)
        excluded = torch._C.DispatchKeySet(key)
        torch._C._dispatch_tls_set_dispatch_key_included(key, torch.is_autocast_enabled(self._kind))
        with warnings.catch_warnings():
            # It is said once in a process that a kernel was replaced: that is the intention.
            warnings.simplefilter("ignore")
            for operator, cast in policies().items():
                self._library.impl(operator, _kernel(operator, cast, self._kind, excluded), self._key)
        if not torch._C._dispatch_has_backend_fallback(key):
            # PyTorch leaves it to the plugin to say that autocast lets all other operators through.
            self._fallback = torch.library.Library("_", "IMPL")
            self._fallback.fallback(torch.library.fallthrough_kernel, self._key)

    def undo(self) -> None:
        """PyTorch's own kernels again."""
        torch._C._dispatch_tls_set_dispatch_key_included(getattr(torch._C.DispatchKey, self._key), False)
        self._library._destroy()
        self._library = None
        if self._fallback is not None:
            self._fallback._destroy()
            self._fallback = None


def _kernel(operator: str, cast: str, kind: str, excluded: Any) -> Kernel:
    name, _, overload = operator.partition(".")
    call = getattr(getattr(torch.ops.aten, name), overload or "default")
    rule = _RULES[cast]

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(excluded):
            args, kwargs = rule(call, kind, args, kwargs)
            return call(*args, **kwargs)

    return kernel


# -- the rules --


def _eligible(value: Any, kind: str) -> bool:
    """Whether autocast may cast it: a floating-point tensor of the kind that is no double."""
    return (
        isinstance(value, torch.Tensor)
        and value.is_floating_point()
        and value.dtype is not torch.float64
        and device_of(value).type == kind
    )


def _cast(values: Any, dtype: torch.dtype, kind: str) -> Any:
    return pytree.tree_map(lambda value: value.to(dtype) if _eligible(value, kind) else value, values)


def _lower_precision(call: Any, kind: str, args: Any, kwargs: Any) -> Any:
    return _cast((args, kwargs), torch.get_autocast_dtype(kind), kind)


def _fp32(call: Any, kind: str, args: Any, kwargs: Any) -> Any:
    return _cast((args, kwargs), torch.float32, kind)


def _fp32_set_opt_dtype(call: Any, kind: str, args: Any, kwargs: Any) -> Any:
    """Compute in float32 where the caller asked for no dtype and the first tensor may be cast.

    Source: autocast_mode.h, `CastPolicy::fp32_set_opt_dtype`.
    """
    names = [argument.name for argument in call._schema.arguments]
    given = dict(zip(names, args, strict=False)) | kwargs
    if given.get("dtype") is not None or not args or not _eligible(args[0], kind):
        return args, kwargs
    index = names.index("dtype")
    if index < len(args):
        return (*args[:index], torch.float32, *args[index + 1 :]), kwargs
    return args, {**kwargs, "dtype": torch.float32}


def _promote(call: Any, kind: str, args: Any, kwargs: Any) -> Any:
    """Cast all to the widest of the operands' types."""
    leaves = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if _eligible(leaf, kind)]
    widest = max((leaf.dtype for leaf in leaves), key=lambda dtype: _WIDTHS.get(dtype, 0), default=None)
    kinds_mixed = len({leaf.dtype for leaf in leaves if _WIDTHS.get(leaf.dtype) == 2}) > 1
    return (args, kwargs) if widest is None else _cast((args, kwargs), torch.float32 if kinds_mixed else widest, kind)


_RULES: dict[str, Callable[[Any, str, Any, Any], Any]] = {
    "LOWER_PRECISION_FP": _lower_precision,
    "FP32": _fp32,
    "FP32_SET_OPT_DTYPE": _fp32_set_opt_dtype,
    "PROMOTE": _promote,
}


@functools.cache
def policies() -> dict[str, str]:
    """How autocast treats each operator of the installed version.

    Returns:
        Operator with its overload, "softmax.int", -> name of the policy in PyTorch's header. Operators that the
        header names and this version no longer has are left out.
    """
    header = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
    text = header.read_text(encoding="utf-8") if header.exists() else ""
    found = {
        name + (f".{overload}" if overload else ""): macro
        for macro, body in _MACRO.findall(text)
        if macro in _RULES
        for name, overload in _ENTRY.findall(body)
    }
    found.update(_NORMS)
    found.update(dict.fromkeys(_RECURRENT, "LOWER_PRECISION_FP"))
    return {operator: policy for operator, policy in found.items() if _exists(operator)}


_NORMS = {"norm.Scalar": "FP32", "norm.ScalarOpt_dim": "FP32", "norm.names_ScalarOpt_dim": "FP32"}
"""`AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE`: written there as calls of the overload that takes a dtype, always
float32.
"""


_RECURRENT = tuple(f"{name}.{form}" for name in ("lstm", "gru", "rnn_tanh", "rnn_relu") for form in ("input", "data"))
"""cuDNN's recurrent networks are cast as a whole: aten/src/ATen/cudnn/AutocastRNN.cpp."""


def _exists(operator: str) -> bool:
    name, _, overload = operator.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    return packet is not None and (overload or "default") in packet.overloads()
