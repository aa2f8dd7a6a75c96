"""Factories and conversions that C++ decides before it dispatches anything: their `device=` argument is read here.

An index alone (`torch.zeros(2, device=0)`) and "cuda" without one ask C++ for a real accelerator; `torch.tensor` and
its like move the new tensor out of the dispatch mode's sight. With the device completed, or handled here, the rest is
the mode's. Default devices (`with torch.device("cuda")`, `torch.set_default_device`) are function modes of PyTorch's
own, which hand these functions on through `DeviceContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._device
from torch.overrides import handle_torch_function

from samedevice.simulation import observers
from samedevice.simulation.labels import LabelTable, is_active
from samedevice.simulation.machine import Machine
from samedevice.simulation.moves import Mover
from samedevice.simulation.patching import Patch, Undoable
from samedevice.simulation.replacing import Replacement, known_to_scripts

__all__ = ["patches"]

Function = Callable[..., Any]
_LIKES = ("empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like")
_NO_FACTORY = (*_LIKES, "as_nested_tensor")
"""Functions that take `device=`, though a default device says nothing to them."""
_SPARSE = {
    "sparse_coo_tensor": 2,
    "sparse_compressed_tensor": 3,
    "sparse_csr_tensor": 3,
    "sparse_csc_tensor": 3,
    "sparse_bsr_tensor": 3,
    "sparse_bsc_tensor": 3,
}
"""How many leading arguments are indices and values."""


def patches(machine: Machine, labels: LabelTable, mover: Mover) -> Iterator[Undoable]:
    """The replacements of factories.

    Args:
        machine: what is simulated.
        labels: where tensors are.
        mover: copies tensors.

    Yields:
        The changes, none of them installed yet.
    """
    # Cached as it is when first asked: let that be PyTorch's own functions.
    constructors = torch.utils._device._device_constructors()
    makers = _Makers(machine, labels, mover)
    replaced: dict[Any, Function] = {}
    for owner in (torch, torch.fft, torch.nested):
        for name, original in _constructors_of(owner, constructors):
            body = _while_active(labels, owner, name, makers.of(name, original))
            stand_in = _overridable(original, body)
            replaced[original] = stand_in
            yield Patch(owner, name, stand_in)
            yield from known_to_scripts(original, stand_in)
    yield Patch(torch.utils._device.DeviceContext, "__torch_function__", _in_context(constructors, replaced))
    yield Patch(torch, "from_numpy", _told(torch.from_numpy))
    yield Patch(torch._C._nn, "_parse_to", _parsing(machine, labels, torch._C._nn._parse_to))


def _constructors_of(owner: Any, constructors: set[Function]) -> list[tuple[str, Function]]:
    known = {id(function) for function in constructors}
    return [(name, value) for name, value in vars(owner).items() if id(value) in known or name in _NO_FACTORY]


def _while_active(labels: LabelTable, owner: Any, name: str, body: Function) -> Function:
    """`body` as long as the simulation runs: who imported the name meanwhile keeps it longer."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return (body if is_active(labels) else getattr(owner, name))(*args, **kwargs)

    return function


def _overridable(original: Function, body: Function) -> Replacement:
    """The stand-in that runs `body`; what stands for a device, as a proxy of `torch.fx` does, goes first."""

    def function(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is not None and hasattr(type(device), "__torch_function__"):
            return handle_torch_function(stand_in, (device,), *args, **kwargs)
        return body(*args, **kwargs)

    stand_in = Replacement(original, function)
    return stand_in


class _Makers:
    """The bodies of the replacements."""

    def __init__(self, machine: Machine, labels: LabelTable, mover: Mover) -> None:
        self._machine = machine
        self._labels = labels
        self._mover = mover

    def of(self, name: str, original: Function) -> Function:
        """The body for a factory."""
        if name in ("as_tensor", "asarray"):
            return self._converting(original)
        if name == "tensor":
            return self._copying(original)
        if name == "nested_tensor":
            return self._nesting(original)
        if name == "as_nested_tensor":
            return self._moving_parts(original)
        if name in _SPARSE:
            return self._assembling(original, _SPARSE[name])
        return self._completing(original)

    def _completing(self, original: Function) -> Function:
        machine = self._machine

        def factory(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("device") is not None:
                device = kwargs["device"] = machine.complete(kwargs["device"])
                if machine.owns(device):
                    machine.initialise()
                    self._mover.join()
                if kwargs.get("out") is not None:
                    self._compare_out(kwargs["out"], kwargs.pop("device"))
            return original(*args, **kwargs)

        return factory

    def _compare_out(self, out: torch.Tensor, device: torch.device) -> None:
        """Source: torch/csrc/autograd/utils/wrap_outputs.h and python_torch_functions, `check_out_type_matches`."""
        found = self._labels.device_of(out)
        if found.type != device.type:
            raise RuntimeError(f"device type {device.type} does not match device type of out parameter ({found.type})")

    def _copying(self, original: Function) -> Function:
        """`torch.tensor`: always new memory."""

        def tensor(data: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
            target = self._target(kwargs, data)
            pinned = kwargs.pop("pin_memory", False)
            made: torch.Tensor = original(data, *args, **kwargs)
            self._labels.set_device(made, target or self._labels.device_of(made))
            if pinned:
                self._labels.pin(made)
            return made

        return tensor

    def _nesting(self, original: Function) -> Function:
        """`torch.nested.nested_tensor`, which copies in C++, except for the jagged layout."""
        completing, copying = self._completing(original), self._copying(original)

        def nested_tensor(*args: Any, **kwargs: Any) -> torch.Tensor:
            on_device = kwargs.get("device") is not None and kwargs.get("layout") is not torch.jagged
            made: torch.Tensor = (copying if on_device else completing)(*args, **kwargs)
            return made

        return nested_tensor

    def _moving_parts(self, original: Function) -> Function:
        """`torch.nested.as_nested_tensor`, which moves each tensor that it is given."""

        def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> torch.Tensor:
            if device is not None:
                target = self._machine.complete(device)
                ts = ts.to(target) if isinstance(ts, torch.Tensor) else [tensor.to(target) for tensor in ts]
            made: torch.Tensor = original(ts, dtype, **kwargs)
            return made

        return as_nested_tensor

    def _converting(self, original: Function) -> Function:
        """`torch.as_tensor` and `torch.asarray`: the memory of what they are given where they can."""

        def convert(data: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
            if kwargs.get("copy") is False and kwargs.get("device") is not None:
                self._refuse_alias(data, kwargs["device"])
            target = self._target(kwargs, data)
            made: torch.Tensor = original(data, *args, **kwargs)
            return made if target is None else made.to(target)

        return convert

    def _refuse_alias(self, data: Any, device: Any) -> None:
        """`asarray(…, copy=False)` compares devices as they are written: "cuda" is not "cuda:0".

        Source: torch/csrc/utils/tensor_new.cpp, `asarray`, 2.6 to 2.14.
        """
        wanted = self._machine.complete(device) if isinstance(device, int) else torch.device(device)
        if isinstance(data, torch.Tensor):
            here = self._labels.device_of(data)
        elif hasattr(data, "__array_interface__"):
            here = self._machine.host
        else:
            return
        if here != wanted:
            raise ValueError(f"can't alias tensor from device '{here}' to '{wanted}'.")

    def _assembling(self, original: Function, parts: int) -> Function:
        """Sparse tensors: with `device=` all parts go there."""
        completing = self._completing(original)

        def assemble(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("device") is None:
                return completing(*self._with_values(args, parts), **kwargs)
            target = self._machine.complete(kwargs["device"])
            if len(args) < 2 and "values" not in kwargs:
                # C++ passes on the kind alone, and guards the device meanwhile.
                made: torch.Tensor = completing(*args, **kwargs)
                self._labels.set_device(made, target)
                return made
            if not self._machine.owns(target) and target.type != "cpu":
                return original(*args, **kwargs)
            del kwargs["device"]
            moved = [self._as_tensor(part).to(target) if _is_data(part) else part for part in args[:parts]]
            made = original(*moved, *args[parts:], **kwargs)
            self._labels.set_device(made, target)
            return made

        return assemble

    def _with_values(self, args: tuple[Any, ...], parts: int) -> tuple[Any, ...]:
        """Indices that are lists become tensors where the values are. Source: torch/csrc/utils/tensor_new.cpp."""
        values = args[parts - 1] if len(args) >= parts else None
        if not isinstance(values, torch.Tensor):
            return args
        device = self._labels.device_of(values)
        return tuple(torch.tensor(part).to(device) if isinstance(part, list) else part for part in args)

    def _as_tensor(self, data: Any) -> torch.Tensor:
        return data if isinstance(data, torch.Tensor) else torch.as_tensor(data)

    def _target(self, kwargs: dict[str, Any], data: Any) -> torch.device | None:
        """Where `device=` or else the data says; `kwargs` is left with what C++ can do on the CPU."""
        device = kwargs.get("device")
        if device is None:
            return self._labels.device_of(data) if isinstance(data, torch.Tensor) else None
        target = self._machine.complete(device)
        if self._machine.owns(target):
            self._machine.initialise()
            kwargs["device"] = self._machine.host
        return target


def _is_data(part: Any) -> bool:
    return not isinstance(part, torch.Size | int)


def _in_context(constructors: set[Function], replaced: dict[Any, Function]) -> Function:
    """`DeviceContext.__torch_function__`, going through the replacements.

    Source: torch/utils/_device.py, 2.6 to 2.14.
    """

    def __torch_function__(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in constructors and kwargs.get("device") is None:
            kwargs["device"] = self.device
            func = replaced.get(func, func)
        return func(*args, **kwargs)

    return __torch_function__


def _told(from_numpy: Function) -> Function:
    """`torch.from_numpy`, which dispatches nothing: observers hear of it here."""

    def function(array: Any) -> torch.Tensor:
        made: torch.Tensor = from_numpy(array)
        if observers.active:
            observers.notify("made", "aten::from_numpy", (made,))
        return made

    return Replacement(from_numpy, function)


def _parsing(machine: Machine, labels: LabelTable, parse_to: Function) -> Function:
    """What `Module.to` reads its arguments with: C++ knows no device for an index alone, nor where a tensor is."""

    def _parse_to(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else kwargs.pop("tensor", None)
        if isinstance(first, torch.Tensor):
            args = (labels.device_of(first), first.dtype, *args[1:])
        elif isinstance(first, int):
            args = (machine.complete(first), *args[1:])
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = machine.complete(kwargs["device"])
        return parse_to(*args, **kwargs)

    return _parse_to
