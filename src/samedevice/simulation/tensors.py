"""What a tensor answers about its device, and the methods that move it: replaced on the class `torch.Tensor`.

On the class, because that reaches parameters and subclasses, every thread, hooks, backward, and PyTorch's own Python
functions, none of which a function mode reaches. Only what C++ would answer from where the tensor really is stands
here; operators are the matter of `operators.py`. Each replacement offers itself to `__torch_function__` first, as the
original does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import handle_torch_function, has_torch_function, has_torch_function_unary

from samedevice.simulation import observers
from samedevice.simulation.labels import LabelTable, native_device
from samedevice.simulation.legacy_types import type_refusal
from samedevice.simulation.machine import Machine
from samedevice.simulation.moves import Mover
from samedevice.simulation.patching import Patch
from samedevice.simulation.refusing import refuse
from samedevice.simulation.replacing import Method

__all__ = ["patches"]

_Base: Any = torch._C.TensorBase
_KINDS = ("cpu", "cuda", "xpu", "mps", "mtia", "hpu", "ipu", "xla", "maia", "vulkan", "meta")
"""Kinds that have an `is_…` property."""
_CPU_ONLY = {"apply_": (), "map_": ("'other'",), "map2_": ("argument 'x'", "argument 'y'")}
"""Methods that call Python for each element, and what they call the tensors beside their own, whose types are compared.

Source: tools/autograd/templates/python_variable_methods.cpp, 2.6 to 2.14.
"""

Body = Callable[..., Any]


def patches(machine: Machine, labels: LabelTable, mover: Mover) -> Iterator[Patch]:
    """The replacements on `torch.Tensor`.

    Args:
        machine: what is simulated.
        labels: where tensors are.
        mover: copies tensors.

    Yields:
        One patch for each attribute.
    """
    methods = _Methods(machine, labels, mover)
    yield Patch(torch.Tensor, "device", property(labels.device_of))
    for kind in _KINDS:
        if hasattr(_Base, f"is_{kind}"):
            yield Patch(torch.Tensor, f"is_{kind}", property(methods.is_on(kind)))
    yield Patch(torch.Tensor, "grad", property(_Base.grad.__get__, methods.set_grad, _Base.grad.__delete__))
    replaced: dict[str, Body] = {
        "to": methods.to,
        "cpu": methods.cpu,
        machine.kind: methods.to_kind,
        "type": methods.type,
        "type_as": methods.type_as,
        "get_device": methods.get_device,
        "set_": methods.set,
        "numpy": methods.numpy,
        "new": methods.new,
        "new_tensor": methods.new_tensor,
    }
    replaced |= {name: methods.cpu_only(name) for name in _CPU_ONLY}
    replaced["__setitem__"] = methods.assign
    for name, method in replaced.items():
        if hasattr(torch.Tensor, name):
            yield Patch(torch.Tensor, name, _overridable(name, method))
        elif name in ("npu", "hpu", "mtia"):
            # A plugin gives it to tensors.
            yield Patch(torch.Tensor, name, _function_of(method))
    yield Patch(torch, "get_device", lambda tensor: tensor.get_device())
    for name in _likes():
        yield Patch(torch.Tensor, name, _overridable(name, methods.with_device(getattr(torch.Tensor, name))))


def _likes() -> list[str]:
    """The factories that are methods: `new_zeros` and its kin."""
    return [name for name in dir(_Base) if name.startswith("new_") and name != "new_tensor"]


def _overridable(name: str, method: Body) -> Method:
    """A method of `torch.Tensor`: `__torch_function__` goes first."""

    def body(self: torch.Tensor, /, *args: Any, **kwargs: Any) -> Any:
        # Also of other arguments: a proxy of `torch.fx` stands for a device.
        if has_torch_function((self, *args, *kwargs.values())):
            return handle_torch_function(replacement, (self, *args, *kwargs.values()), self, *args, **kwargs)
        return method(self, *args, **kwargs)

    replacement = Method(getattr(torch.Tensor, name), body)
    return replacement


def _function_of(method: Body) -> Body:
    def function(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if has_torch_function_unary(self):
            return handle_torch_function(function, (self,), self, *args, **kwargs)
        return method(self, *args, **kwargs)

    return function


class _Methods:
    """The bodies of the replacements; their first argument is the tensor."""

    def __init__(self, machine: Machine, labels: LabelTable, mover: Mover) -> None:
        self._machine = machine
        self._labels = labels
        self._mover = mover

    def _is_away(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor is on a simulated device."""
        return self._machine.owns(self._labels.device_of(tensor))

    # -- where it is -----------------------------------------------------------------------------------------------

    def is_on(self, kind: str) -> Callable[[torch.Tensor], bool]:
        device_of = self._labels.device_of
        return lambda tensor: device_of(tensor).type == kind

    def get_device(self, tensor: torch.Tensor) -> int:
        device = self._labels.device_of(tensor)
        return -1 if device.type == "cpu" else int(device.index or 0)

    def type(self, tensor: torch.Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
        if dtype is None:
            name = str(_Base.type(tensor))
            return name.replace("torch.", f"torch.{self._machine.kind}.", 1) if self._is_away(tensor) else name
        if isinstance(dtype, torch.dtype):
            return tensor.to(dtype, non_blocking)
        name = dtype if isinstance(dtype, str) else _type_name(dtype)
        if not (name.startswith("torch.") and name.endswith("Tensor") and hasattr(torch, name.rpartition(".")[2])):
            # No type at all, in PyTorch's words: on a build without the device those for a module like a device's.
            if name.startswith(f"torch.{self._machine.kind}."):
                raise ValueError(f"invalid type: '{name}'")
            return _Base.type(tensor, dtype)
        return self._to_type(tensor, name)

    def _to_type(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        """To a legacy type such as "torch.cuda.FloatTensor"; one that is on that kind of device already stays there."""
        away = name.startswith(f"torch.{self._machine.kind}.")
        dtype = getattr(torch, name.rpartition(".")[2]).dtype
        stays = away == self._is_away(tensor)
        device = (
            self._labels.device_of(tensor) if stays else self._machine.complete(self._machine.kind if away else "cpu")
        )
        return tensor.to(device, dtype)

    # -- moving ----------------------------------------------------------------------------------------------------

    def to(self, tensor: torch.Tensor, /, *args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else kwargs.pop("tensor", None)
        if isinstance(first, torch.Tensor):
            args = (self._labels.device_of(first), first.dtype, *args[1:])
        device = args[0] if args else kwargs.get("device")
        dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
        if device is None or isinstance(device, torch.dtype) or not isinstance(dtype, torch.dtype | None):
            return _Base.to(tensor, *args, **kwargs)
        copy = args[3] if len(args) > 3 else kwargs.get("copy", False)
        return self._move(tensor, self._machine.complete(device), dtype, copy, kwargs.get("memory_format"))

    def cpu(self, tensor: torch.Tensor, memory_format: Any = None) -> Any:
        return self._move(tensor, self._machine.host, None, False, memory_format)

    def to_kind(
        self, tensor: torch.Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
    ) -> Any:
        target = self._machine.current_device if device is None else self._machine.complete(device)
        if target.type != self._machine.kind:
            raise RuntimeError(f"Invalid device, must be {self._machine.kind} device")
        return self._move(tensor, target, None, False, memory_format)

    def type_as(self, tensor: torch.Tensor, other: torch.Tensor) -> Any:
        return self.to(tensor, other)

    def _move(
        self, tensor: torch.Tensor, device: torch.device, dtype: torch.dtype | None, copy: bool, memory_format: Any
    ) -> Any:
        source = self._labels.device_of(tensor)
        owns = self._machine.owns
        if self._labels.refuse is not None and owns(device):
            self._labels.refuse(tensor, dtype or tensor.dtype)
        crosses = source != device and (owns(device) or (owns(source) and device.type == "cpu"))
        if crosses and native_device(tensor).type != "meta":
            return self._mover.copy(tensor, device, dtype, memory_format)
        keywords = {} if memory_format is None else {"memory_format": memory_format}
        if source != device:
            return _Base.to(tensor, self._machine.host if owns(device) else device, dtype, copy=copy, **keywords)
        result: torch.Tensor = _Base.to(tensor, dtype or tensor.dtype, copy=copy, **keywords)
        if observers.active and result is tensor:
            observers.notify("moved", "aten::_to_copy", (tensor,), (tensor,))
        return result

    def set(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """As `set_`; a storage among the arguments is no operand that the dispatch mode could check."""
        source = args[0] if args else kwargs.get("source")
        self._check_storage(tensor, source)
        device = self._labels.device_of(tensor)
        result: torch.Tensor = _Base.set_(tensor, *args, **kwargs)
        if source is None:
            # A new storage, empty.
            self._labels.set_device(result, device)
        return result

    def _check_storage(self, tensor: torch.Tensor, source: Any) -> None:
        if isinstance(source, torch.TypedStorage):
            source = source._untyped_storage
        if isinstance(source, torch.UntypedStorage):
            device = self._labels.device_of(tensor)
            if source.device != device:
                values = {"device": device, "other_device": source.device}
                raise refuse("set-storage", "aten::set_", [("self", tensor)], self._labels, **values)

    # -- leaving PyTorch -------------------------------------------------------------------------------------------

    def numpy(self, tensor: torch.Tensor, *, force: bool = False) -> Any:
        if not self._is_away(tensor):
            return _Base.numpy(tensor, force=force)
        if force:
            return _Base.numpy(tensor.detach().cpu(), force=True)
        raise refuse("numpy", "aten::numpy", [("self", tensor)], self._labels, device=self._labels.device_of(tensor))

    def cpu_only(self, name: str) -> Body:
        original = getattr(_Base, name)
        places = _CPU_ONLY[name]

        def method(tensor: torch.Tensor, *args: Any) -> Any:
            for other, place in zip(args, places, strict=False):
                if isinstance(other, torch.Tensor) and self._is_away(other) != self._is_away(tensor):
                    raise TypeError(f"{name}: expected {tensor.type()} for {place} (got {other.type()})")
            if self._is_away(tensor):
                raise refuse("cpu-only-method", f"aten::{name}", [("self", tensor)], self._labels, function=name)
            return original(tensor, *args)

        return method

    # -- making others ---------------------------------------------------------------------------------------------

    def with_device(self, original: Body) -> Body:
        def method(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("device") is not None:
                kwargs["device"] = self._machine.complete(kwargs["device"])
            return original(tensor, *args, **kwargs)

        return method

    def new(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        device = self._labels.device_of(tensor)
        if kwargs.get("device") is not None:
            target = self._machine.complete(kwargs.pop("device"))
            if target.type != device.type:
                raise RuntimeError(
                    f"legacy constructor expects device type: {device.type} but device type: {target.type} was passed"
                )
            device = target
        given = args[0] if args else None
        if isinstance(given, torch.Tensor) and self._labels.device_of(given).type != device.type:
            raise type_refusal(tensor.dtype, device.type, given)
        self._check_storage(tensor, given)
        made: torch.Tensor = _Base.new(tensor, *args, **kwargs)
        if not any(isinstance(arg, torch.Tensor) for arg in args):
            self._labels.set_device(made, device)
        return made

    def new_tensor(self, tensor: torch.Tensor, data: Any, *, device: Any = None, **kwargs: Any) -> torch.Tensor:
        target = self._labels.device_of(tensor) if device is None else self._machine.complete(device)
        made: torch.Tensor = _Base.new_tensor(tensor, data, **kwargs)
        self._labels.set_device(made, target)
        return made

    # -- writing into it -------------------------------------------------------------------------------------------

    def assign(self, tensor: torch.Tensor, index: Any, value: Any) -> None:
        """As `tensor[index] = value`; C++ names the tensor's type where it knows no way to write the value."""
        try:
            _Base.__setitem__(tensor, index, value)
        except TypeError as error:
            name = str(_Base.type(tensor))
            if self._is_away(tensor) and str(error).endswith(f" to a {name}"):
                error.args = (str(error).removesuffix(name) + tensor.type(),)
            raise error.with_traceback(None) from None

    # -- gradients -------------------------------------------------------------------------------------------------

    def set_grad(self, tensor: torch.Tensor, gradient: Any) -> None:
        if isinstance(gradient, torch.Tensor):
            device, found = self._labels.device_of(tensor), self._labels.device_of(gradient)
            operands = [("grad", gradient), ("self", tensor)]
            if device.type != found.type:
                values = {"grad_device": found.type, "device": device.type}
                raise refuse("assigned-gradient", "aten::set_grad", operands, self._labels, **values)
            if device != found:
                # The indices are printed as characters.
                values = {"grad_text": chr(found.index or 0), "self_text": chr(device.index or 0)}
                raise refuse("assigned-gradient-index", "aten::set_grad", operands, self._labels, **values)
        _Base.grad.__set__(tensor, gradient)


def _type_name(legacy: Any) -> str:
    """The name of a legacy type object: `torch.cuda.FloatTensor` says it as its name and module."""
    return f"{legacy.__module__}.{legacy.__name__}"
