"""On which device a tensor is said to be: a label of its storage.

Note [The label lives on the storage's own Python object]
PyTorch keeps one Python object for each storage, alive as long as the storage itself, also while only C++ knows it
(since 2.1; `UntypedStorage` has a `__dict__`). The label is an attribute of that object. So views, `detach`, `.data`
and what autograd saved share it by construction, it costs no table, it dies with its storage, and an address that is
used again begins without one. The attribute's name is new for each simulation: what an earlier one labelled is on the
CPU again.

A storage without label is where PyTorch says it is. Labels know nothing of operators.

Note [Floating storages]
C++ code inside an operator, above all the formulas of backward, allocates from the options of a tensor that it was
given: on a real device that is the tensor's device, here it is always the CPU. Such a storage floats: as long as the
same call from Python into PyTorch goes on, it joins the device of whatever it is combined with. Once the call has
returned, or Python asks for its device, it is on the CPU, as the same line of Python would put it.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from samedevice.simulation.cuda_memory import hold, let_go
from samedevice.simulation.patching import Patch
from samedevice.simulation.storage_objects import protection

__all__ = ["Floating", "LabelTable", "calling_site", "device_of", "device_so_far", "set_device"]

_numbers = itertools.count()
# Looked up once, before any interception.
_storage = torch._C.TensorBase.untyped_storage
_native_device = torch._C.TensorBase.device.__get__
_Device = torch.device
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_has_torch_function = torch._C._has_torch_function_unary
_NO_STORAGE = (NotImplementedError, RuntimeError, ValueError)
"""What `untyped_storage` raises for sparse, nested, batched and other tensors without one, 2.6 to 2.13."""

_NOTHING: dict[str, Any] = {}
_NOT_CALLING = (str(Path(__file__).parent), torch._ops.__file__)

_table: LabelTable | None = None


class Floating(NamedTuple):
    """The label of a storage that C++ may have allocated for itself; see Note [Floating storages].

    Attributes:
        frame: identity of the Python frame that called into PyTorch.
        instruction: where in it.
        code: the frame's code, since a frame's identity is used again.
    """

    frame: int
    instruction: int
    code: Any


def calling_site() -> Floating:
    """The Python frame and instruction that called into PyTorch: the innermost outside this package.

    The frames of `torch/_ops.py` do not count: there this package and others call operators from.
    """
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_NOT_CALLING) and frame.f_back is not None:
        frame = frame.f_back
    return Floating(id(frame), frame.f_lasti, frame.f_code)


class LabelTable:
    """The labels of one simulation.

    Attributes:
        read: storage -> `torch.device`, `Floating` or None; for the interception itself.
        attribute: the attribute that holds the label.
        default: gives every storage the label None; must be installed while the table is in use.
        refuse: asked before a tensor of that dtype is put on a device; None: devices take all that PyTorch has.
    """

    refuse: Callable[[torch.Tensor, torch.dtype], None] | None = None

    def __init__(self) -> None:
        number = next(_numbers)
        self.attribute = f"_samedevice_device_{number}"
        self._pinned = f"_samedevice_pinned_{number}"
        self.read: Any = operator.attrgetter(self.attribute)
        self.default = Patch(torch.UntypedStorage, self.attribute, None)
        self._protect = protection()

    def device_of(self, tensor: torch.Tensor) -> torch.device:
        """Where the tensor is said to be.

        Args:
            tensor: of any layout or class, also functorch's wrappers.

        Returns:
            A complete device: "cuda:0", never "cuda".
        """
        label = self.label_of(tensor)
        if type(label) is Floating:
            # Python asks, so Python has it: it is settled.
            self.set_label(tensor, None)
            label = native_device(tensor)
        found: torch.device = label
        return found

    def label_of(self, tensor: torch.Tensor) -> Any:
        """As `device_of`, and a `Floating` where that is not settled yet."""
        storage = storage_of(tensor)
        label = None if storage is None else self.read(storage)
        if label is None and type(tensor) not in _PLAIN:
            if (inner := _wrapped(tensor)) is not None:
                return self.label_of(inner)
            label = getattr(tensor, "__dict__", _NOTHING).get(self.attribute)
        return native_device(tensor) if label is None else label

    def set_device(self, tensor: torch.Tensor, device: torch.device | None) -> None:
        """Say that the tensor, and all that shares its storage, is on `device`.

        Args:
            tensor: of any layout or class; one without any storage stays where PyTorch says.
            device: complete; None, the host's or meta removes the label.
        """
        self.set_label(tensor, None if device is None or device.type in ("cpu", "meta") else device)

    def set_label(self, tensor: torch.Tensor, label: torch.device | Floating | None) -> None:
        """Put `label` on the storages of the tensor; None is the host."""
        for storage in storages_of(tensor):
            before = self.read(storage)
            if before is not label:
                if self.refuse is not None and type(label) is _Device and type(before) is not Floating:
                    self.refuse(tensor, tensor.dtype)
                self.put(storage, label)

    def set_own(self, tensor: torch.Tensor, device: torch.device) -> None:
        """Say where a tensor is that wraps others: on its storage, should it have one, else on itself."""
        self.set_label(tensor, device)
        if self.label_of(tensor) != device:
            tensor.__dict__[self.attribute] = device

    def put(self, storage: torch.UntypedStorage, label: torch.device | Floating | None) -> None:
        """Put `label` on a storage. Note [Garbage that takes a storage's attributes along] in storage_objects.py."""
        if self._protect is not None:
            self._protect(storage)
        setattr(storage, self.attribute, label)
        if type(label) is _Device:
            hold(storage, label)
        else:
            let_go(storage)

    def pin(self, tensor: torch.Tensor) -> None:
        """Say that the tensor is in page-locked memory; it stays where it is."""
        for storage in storages_of(tensor):
            if self._protect is not None:
                self._protect(storage)
            setattr(storage, self._pinned, True)

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Whether `pin` was called for the tensor or what shares its storage."""
        storage = storage_of(tensor)
        return storage is not None and getattr(storage, self._pinned, False)


def activate(table: LabelTable | None) -> None:
    """Make `table` the one that the functions of this module use; None ends it. For `simulate` alone."""
    global _table
    _table = table


def is_active(table: LabelTable) -> bool:
    """Whether the simulation that `table` belongs to is running."""
    return _table is table


def device_of(tensor: torch.Tensor) -> torch.device:
    """Where the tensor is said to be by the running simulation; outside one, where PyTorch says.

    Args:
        tensor: of any layout or class.

    Returns:
        A complete device: "cuda:0", never "cuda".
    """
    return native_device(tensor) if _table is None else _table.device_of(tensor)


def device_so_far(tensor: torch.Tensor) -> torch.device:
    """As `device_of` for one who only watches: what floats is on the CPU so far and floats on."""
    if _table is None:
        return native_device(tensor)
    label = _table.label_of(tensor)
    return native_device(tensor) if type(label) is Floating else label


def set_device(tensor: torch.Tensor, device: torch.device) -> None:
    """Say that the tensor, and all that shares its storage, is on `device`. Outside a simulation nothing happens.

    Args:
        tensor: of any layout or class.
        device: a complete device, as `Machine.complete` returns it.
    """
    if _table is not None:
        _table.set_device(tensor, device)


def native_device(tensor: torch.Tensor) -> torch.device:
    """Where PyTorch itself says that the tensor is."""
    if _has_torch_function(tensor):
        with torch._C.DisableTorchFunction():
            return _native_device(tensor)
    return _native_device(tensor)


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """The first storage that holds the tensor's values, or None where it has none."""
    try:
        if not _has_torch_function(tensor):
            return _storage(tensor)
        with torch._C.DisableTorchFunction():
            return _storage(tensor)
    except _NO_STORAGE:
        return next(iter(storages_of(tensor)), None)


def _wrapped(tensor: torch.Tensor) -> torch.Tensor | None:
    """The first of the tensors that a subclass stands for, as `DTensor` does: it has no memory of its own."""
    if not hasattr(type(tensor), "__tensor_flatten__"):
        return None
    names, _ = tensor.__tensor_flatten__()  # type: ignore[attr-defined]
    return next((inner for name in names if isinstance(inner := getattr(tensor, name), torch.Tensor)), None)


def storages_of(tensor: torch.Tensor) -> tuple[torch.UntypedStorage, ...]:
    """All storages that hold the tensor's values: one, none, or one for each part of a sparse or nested tensor."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        return tuple(_storages(tensor))


def _storages(tensor: torch.Tensor) -> list[torch.UntypedStorage]:
    try:
        return [_storage(tensor)]
    except _NO_STORAGE:
        return [storage for part in _parts(tensor) for storage in _storages(part)]


def _parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The tensors that a tensor without a storage is made of."""
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return (torch._C._functorch.get_unwrapped(tensor),)
    layout = tensor.layout
    if layout is torch.sparse_coo:
        return tensor._values(), tensor._indices()
    if layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.values(), tensor.crow_indices(), tensor.col_indices()
    if layout in (torch.sparse_csc, torch.sparse_bsc):
        return tensor.values(), tensor.ccol_indices(), tensor.row_indices()
    if tensor.is_nested and layout is torch.strided:
        return (tensor.values(),)
    return _batched(tensor)


def _batched(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What a tensor of the older vmap wraps: `torch.autograd.grad(…, is_grads_batched=True)` uses it, 2.6 to 2.14."""
    if not torch._C._dispatch_keys(tensor).has("Batched"):
        return ()
    layers = (torch._remove_batch_dim(tensor, level, 1, 0) for level in range(1, 9))
    return tuple(inner for inner in layers if not torch._C._dispatch_keys(inner).has("Batched"))[:1]
