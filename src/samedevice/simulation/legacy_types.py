"""The legacy tensor types: `torch.cuda.FloatTensor([1.0])`, `isinstance(x, torch.FloatTensor)`,
`torch.set_default_tensor_type`.

PyTorch's own type objects ask C++ where a tensor is and cannot be changed, so the names of `torch` and of the
simulated kind's module hold stand-ins. `Tensor.type("torch.cuda.FloatTensor")` is `tensors.py`'s, which reads these
objects' names.

Source: torch/csrc/tensor/python_tensor.cpp, torch/csrc/utils/tensor_new.cpp (`legacy_tensor_ctor`), 2.6 to 2.14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch
from torch.utils._device import DeviceContext

from samedevice.simulation import labels
from samedevice.simulation.machine import Machine
from samedevice.simulation.patching import Patch, Undoable

__all__ = ["patches", "type_refusal"]

_NAMES = ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
_OPTIONS = (
    "TensorOptions(dtype={dtype}, device={device}, layout=Strided, requires_grad=false (default), "
    "pinned_memory=false (default), memory_format=(nullopt))"
)
_IN_CPP = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.uint8: "unsigned char",
    torch.int8: "signed char",
    torch.int16: "short",
    torch.int32: "int",
    torch.int64: "long int",
    torch.bool: "bool",
}
"""How C++ prints a dtype: c10/util/typeid.h."""


def patches(machine: Machine) -> Iterator[Undoable]:
    """The types of `torch` and of the simulated kind's module, and the default type.

    Args:
        machine: what is simulated.

    Yields:
        The changes, none of them installed yet.
    """
    real = {f"{name}Tensor": getattr(torch, f"{name}Tensor") for name in _NAMES}
    module = getattr(torch, machine.kind, None)
    for name, type_ in real.items():
        yield Patch(torch, name, _stand_in(machine, type_, "cpu"))
        if (machine.kind == "cuda" and name != "BFloat16Tensor") or hasattr(module, name):
            yield Patch(module, name, _stand_in(machine, type_, machine.kind))
    yield from _sparse(machine)
    yield Patch(torch.Tensor, "__new__", staticmethod(_subclassing(torch.Tensor.__new__)))
    yield from _DefaultType(machine, real).patches()


def _sparse(machine: Machine) -> Iterator[Undoable]:
    """`torch.sparse.FloatTensor` and its kin, and those of the simulated kind, where PyTorch has a module for them."""
    module = getattr(getattr(torch, machine.kind, None), "sparse", None)
    for name in [f"{name}Tensor" for name in _NAMES if hasattr(torch.sparse, f"{name}Tensor")]:
        real = getattr(torch.sparse, name)
        yield Patch(torch.sparse, name, _stand_in(machine, real, "cpu", _SparseType))
        if hasattr(module, name):
            yield Patch(module, name, _stand_in(machine, real, machine.kind, _SparseType))


def _subclassing(construct: Callable[..., Any]) -> Callable[..., Any]:
    """`Subclass(data)`, which C++ refuses under a dispatch mode: the tensor that it makes is known to Python by then.

    Source: torch/csrc/autograd/python_variable.cpp, `THPVariable_NewWithVar`, 2.6 to 2.14.
    """

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if cls is torch.Tensor:
            return construct(cls, *args, **kwargs)
        return construct(torch.Tensor, *args, **kwargs).as_subclass(cls)

    return new


class _LegacyType(type):
    """A legacy type: tensors of one dtype on one kind of device."""

    machine: Machine
    real: Any
    kind: str
    dtype: torch.dtype

    layout = torch.strided
    is_sparse = False

    @property
    def is_cuda(cls) -> bool:
        return cls.kind == "cuda"

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, torch.Tensor)
            and instance.dtype is cls.dtype
            and instance.layout is cls.layout
            and instance.device.type == cls.kind
        )

    def __call__(cls, *args: Any, device: Any = None, **kwargs: Any) -> torch.Tensor:
        target = cls.machine.complete(cls.kind if device is None else device)
        if target.type != cls.kind:
            raise RuntimeError(
                f"legacy constructor expects device type: {cls.kind} but device type: {target.type} was passed"
            )
        given = args[0] if args else None
        if isinstance(given, torch.Tensor) and not isinstance(given, cls):
            cls.refuse(given)
        if cls.kind != "cpu":
            cls.machine.initialise()
        made: torch.Tensor = cls.real(*args, **kwargs)
        if not isinstance(given, torch.Tensor | torch.UntypedStorage | torch.TypedStorage):
            labels.set_device(made, target)
        return made

    def refuse(cls, given: torch.Tensor) -> NoReturn:
        """Refuse a tensor of another type."""
        raise type_refusal(cls.dtype, cls.kind, given)


def type_refusal(dtype: torch.dtype, kind: str, given: torch.Tensor) -> TypeError:
    """What PyTorch says where a legacy constructor is given a tensor of another type.

    Args:
        dtype: that of the tensors that it makes.
        kind: the kind of device on which it makes them.
        given: the tensor.

    Returns:
        The error, to be raised. Source: torch/csrc/utils/tensor_new.cpp, `new_with_tensor`, 2.6 to 2.14.
    """
    expected = _OPTIONS.format(dtype=_IN_CPP.get(dtype, dtype), device=kind)
    got = _OPTIONS.format(dtype=_IN_CPP.get(given.dtype, given.dtype), device=given.device)
    return TypeError(f"expected {expected} (got {got})")


class _SparseType(_LegacyType):
    """A legacy type of sparse tensors, which are where their parts are."""

    layout = torch.sparse_coo
    is_sparse = True

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        made: torch.Tensor = cls.real(*args, **kwargs)
        if cls.kind != "cpu" and not any(isinstance(part, torch.Tensor) for part in args):
            cls.machine.initialise()
            labels.set_device(made, cls.machine.current_device)
        return made


def _stand_in(machine: Machine, real: Any, kind: str, meta: type[_LegacyType] | None = None) -> _LegacyType:
    parent = real.__module__ if kind == "cpu" else real.__module__.replace("torch", f"torch.{kind}", 1)
    type_ = (meta or _LegacyType)(real.__name__, (), {"__module__": parent})
    type_.machine, type_.real, type_.kind, type_.dtype = machine, real, kind, real.dtype
    return type_


class _DefaultType:
    """`torch.set_default_tensor_type`: a default dtype, and the device on which factories make their tensors."""

    def __init__(self, machine: Machine, real: dict[str, Any]) -> None:
        self._machine = machine
        self._real = real
        self._is_away = False
        self._is_suspended = False
        self._set_default_tensor_type = torch.set_default_tensor_type
        self._get_default_device = torch.get_default_device
        self._constructor = Patch(torch.Tensor, "__new__", _placing(machine))

    def patches(self) -> Iterator[Undoable]:
        yield Patch(torch, "set_default_tensor_type", self.set)
        yield Patch(torch, "get_default_device", self.get_default_device)
        yield Patch(torch._C, "_get_default_device", lambda: self._machine.kind if self._is_away else "cpu")
        yield self

    def install(self) -> None:
        """Nothing is changed until a script sets such a type; changes are suspended while PyTorch imports."""
        if self._is_away:
            self._constructor.install()
            if self._is_suspended:
                torch.set_default_device(self._machine.kind)

    def undo(self) -> None:
        """Factories make CPU tensors."""
        if self._is_away:
            self._constructor.undo()
            # A mode is off the stack while it handles a call, and must not be ended then.
            stack = torch.overrides._get_current_function_mode_stack()
            self._is_suspended = any(isinstance(mode, DeviceContext) for mode in stack)
            if self._is_suspended:
                torch.set_default_device(None)

    def set(self, t: Any) -> None:
        """Make `t` the type of tensors that are made without saying more.

        Args:
            t: a legacy type or its name, e.g. "torch.cuda.FloatTensor".

        Raises:
            TypeError: not a floating-point type.
        """
        name = t if isinstance(t, str) else f"{t.__module__}.{t.__name__}"
        self._set_default_tensor_type(self._real.get(name.rpartition(".")[2], t))
        away = name.startswith(f"torch.{self._machine.kind}.")
        if away != self._is_away:
            torch.set_default_device(self._machine.kind if away else None)
            (self._constructor.install if away else self._constructor.undo)()
            self._is_away = away

    def get_default_device(self) -> torch.device:
        """A default type is no default device, says PyTorch."""
        return self._machine.host if self._is_away else self._get_default_device()


def _placing(machine: Machine) -> Callable[..., Any]:
    """`torch.Tensor(2, 3)`, which makes a tensor of the default type."""
    original = _subclassing(torch.Tensor.__new__)

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(cls, *args, **kwargs)
        if not (args and isinstance(args[0], torch.Tensor)):
            labels.set_device(made, machine.current_device)
        return made

    return new
