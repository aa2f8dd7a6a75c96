"""`torch.autocast("cpu")` leaves tensors alone that say they are elsewhere.

They are CPU tensors in truth, so its kernels would cast them. While it is on, a kernel stands before each of PyTorch's
own: with an operand on a device it lets the operator through uncast, else it hands the call on.

Private PyTorch API used here: `torch.library.get_kernel`, since 2.9. Before, nothing stands in the way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from samedevice.simulation.labels import device_of

__all__ = ["HostAutocast"]

_KEY = "AutocastCPU"
_get_kernel: Callable[[str, str], Any] | None = getattr(torch.library, "get_kernel", None)


class HostAutocast:
    """The kernels before those of autocast on the CPU, registered at its first use.

    Args:
        kind: of device that is simulated.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._library: Any = None
        self._wanted = False

    def install(self) -> None:
        """Register them again where they were before PyTorch imported something."""
        if self._wanted:
            self._register()

    def undo(self) -> None:
        """PyTorch's own kernels again."""
        if self._library is not None:
            self._library._destroy()
            self._library = None

    def use(self) -> None:
        """Autocast on the CPU is switched on."""
        self._wanted = True
        if self._library is None:
            self._register()

    def _register(self) -> None:
        if _get_kernel is None:
            return
        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            # It is said once in a process that a kernel was replaced: that is the intention.
            warnings.simplefilter("ignore")
            for name in torch._C._dispatch_get_registrations_for_dispatch_key(_KEY):
                namespace, _, operator = name.partition("::")
                if namespace == "aten":
                    kernel = _leaving_alone(name, _get_kernel(name, _KEY), self._kind)
                    self._library.impl(operator, kernel, _KEY, with_keyset=True)


def _leaving_alone(name: str, original: Any, kind: str) -> Callable[..., Any]:
    base, _, overload = name.removeprefix("aten::").partition(".")
    call = getattr(getattr(torch.ops.aten, base), overload or "default")
    excluded = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY))

    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        if not any(isinstance(leaf, torch.Tensor) and device_of(leaf).type == kind for leaf in leaves):
            return original.call_boxed(keyset, *args, **kwargs)
        with torch._C._ExcludeDispatchKeyGuard(excluded):
            return call(*args, **kwargs)

    return kernel
