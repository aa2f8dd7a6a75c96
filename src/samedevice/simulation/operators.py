"""Sees every operator below autograd: has its operands checked, runs it on the CPU, and labels what it returns.

A dispatch mode, because only there arrive the operators that C++ calls by itself (backward, composite functions,
TorchScript) and factories with `device=`. What C++ never dispatches, because both devices are really the CPU, is
answered by `tensors.py`. The mode holds no rules: `device_checks` decides what is refused. In the common case, all
operands on one device, it only compares their labels; the rest was decided in `operator_facts.py`.

Private PyTorch API used here, 2.6 to 2.14: `torch._C._push_on_torch_dispatch_stack`, `_pop_torch_dispatch_stack`,
`_len_torch_function_stack`, `OpOverload._op`, `OpOverload._schema`, `OpOverload._op_dk`,
`torch._C._get_dispatch_mode`, `_TorchDispatchModeKey`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from samedevice.faults import Fault, fault_of
from samedevice.simulation import (
    device_checks,
    higher_order,
    kernels,
    nondeterministic,
    observers,
    pinning,
)
from samedevice.simulation.gradients import CrossDeviceEdges
from samedevice.simulation.labels import Floating, LabelTable, calling_site
from samedevice.simulation.machine import Machine
from samedevice.simulation.operator_facts import COMPOSITE, NOTHING_TO_DO, Operator
from samedevice.simulation.patching import Applied

__all__ = ["DeviceMode", "is_tracing"]

# Looked up once, before any interception.
_storage = torch._C.TensorBase.untyped_storage
_function_modes = torch._C._len_torch_function_stack
_push = torch._C._push_on_torch_dispatch_stack
_pop = torch._C._pop_torch_dispatch_stack
_Device = torch.device
_Tensor = torch.Tensor
_NO_DISPATCH = torch._C._disabled_torch_dispatch_impl
_EXPLICIT = torch._C.DispatchKey.CompositeExplicitAutograd
_META = torch.device("meta")
_UNSEEN: Any = object()
_NO_KEYWORDS: dict[str, Any] = {}
_NO_TENSOR = frozenset({type(None), int, float, bool, complex})
"""What stands for a tensor in a dispatched call: nothing, or a number that Python wrote."""
_observers = observers.active

_MADE_OF_PARTS = ("aten::_sparse_coo_tensor_with_dims_and_tensors",)
"""C++ gives it all options of its values, `pin_memory` too; a device that Python names has moved the parts before."""


class _Explicit(threading.local):
    """What this thread says of the device beside the operators' arguments."""

    target: torch.device | None = None
    """Where copies go; see `DeviceMode.moving_to`."""
    told: bool = False
    """Whether `device="cpu"` is the program's own word; see `DeviceMode.told`."""


class _LastError(threading.local):
    """What the last error in this thread said; not the error, which would keep frames alive."""

    text = ""
    fault: Fault | None = None


class _Entered(threading.local):
    """How often this thread has entered the mode."""

    depth = 0


class DeviceMode(TorchDispatchMode):
    """Labels what operators return and refuses what a real device refuses.

    Args:
        machine: the machine being simulated.
        labels: where tensors are.
        edges: takes gradients back over operators whose operands were on several devices.
    """

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled in a simulation: save dynamo's wrapper around each call.
        return False

    def __init__(self, machine: Machine, labels: LabelTable, edges: CrossDeviceEdges) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._machine = machine
        self._labels = labels
        self._edges = edges
        self._pending = edges.pending
        self._read = labels.read
        self._put = labels.put
        self._operators: dict[Any, Operator] = {}
        self._explicit = _Explicit()
        self._entered = _Entered()
        self._last = _LastError()
        self._ended = False
        self._quantized = False

    # -- being active: modes belong to threads ---------------------------------------------------------------------

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Within it the mode is active in this thread."""
        _push(self)
        self._entered.depth += 1
        try:
            yield
        finally:
            self._entered.depth -= 1
            _pop(None)

    def enter_for_good(self) -> None:
        """Make the mode active in a thread that began before the simulation; it stays there, idle, after the end."""
        if not self._entered.depth and not self._ended:
            self._entered.depth = 1
            _push(self)

    def end(self) -> None:
        """Let every operator through from now on, in whatever thread the mode is still active."""
        self._ended = True

    @contextlib.contextmanager
    def moving_to(self, device: torch.device) -> Iterator[None]:
        """Within it `aten::_to_copy` lands on `device` in this thread, be it the CPU."""
        if self._machine.owns(device):
            self._machine.initialise()
        self._explicit.target = device
        try:
            yield
        finally:
            self._explicit.target = None

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Within it `device="cpu"` is what the program says, in this thread, of every operator."""
        before, self._explicit.told = self._explicit.told, True
        try:
            yield
        finally:
            self._explicit.told = before

    # -- one operator ----------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called by PyTorch. Spelled out for speed: this is what a simulation costs."""
        try:
            operator = self._operators[func]
        except KeyError:
            if not isinstance(func, torch._ops.OpOverload):
                return self._run_higher_order(func, args, kwargs or _NO_KEYWORDS)
            operator = self._known(func)
        if self._pending:
            self._edges.flush()
        kwargs = kwargs or _NO_KEYWORDS
        if not operator.plain or (kwargs and operator.names_tensors) or types or _function_modes() or self._ended:
            return self._slowly(operator, types, args, kwargs)
        read = self._read
        label = _UNSEEN
        count = len(args)
        uniform = True
        try:
            for position in operator.positions:
                if position < count and type(value := args[position]) not in _NO_TENSOR:
                    found = read(_storage(value))
                    if found is not label:
                        if label is not _UNSEEN:
                            uniform = False
                            break
                        label = found
        except NotImplementedError:  # sparse, nested: no storage of its own
            uniform = False
        if not uniform or type(label) is Floating:
            return self._slowly(operator, types, args, kwargs)
        try:
            result = operator.call(*args, **kwargs)
        except RuntimeError as error:  # NotImplementedError since 2.7
            if type(label) is not _Device:
                raise
            result = kernels.instead(error, operator, label, args, kwargs)
        if type(label) is _Device and operator.fresh:
            if type(result) is _Tensor:
                try:
                    self._put(_storage(result), label)
                except NotImplementedError:
                    self._labels.set_label(result, label)
            else:
                self._label(operator, result, label)
        if _observers:
            self._observe(operator.event, operator, result, args, kwargs)
        return result

    def _known(self, func: Any) -> Operator:
        """What there is to know of an operator that is called for the first time."""
        operator = self._operators[func] = Operator(func)
        # Where dtypes are refused, each result is looked at.
        operator.plain = operator.plain and self._labels.refuse is None
        self._quantized = self._quantized or operator.makes_quantized
        if self._quantized:
            for known in self._operators.values() if operator.makes_quantized else (operator,):
                known.plain = known.plain and not known.refuses_quantized
        return operator

    def _slowly(self, operator: Operator, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """As `_general`; an error shows one frame of this package, since the others say nothing to the user."""
        if operator.kind == "python" and not self._ended and not is_tracing():
            return self._run_python(operator, args, kwargs)
        try:
            return self._general(operator, types, args, kwargs)
        except Exception as error:
            self._last.text, self._last.fault = str(error), fault_of(error)
            raise error.with_traceback(None) from error.__cause__

    def last_error(self) -> tuple[str, Fault | None]:
        """Text and fault of the last error in this thread: TorchScript drops both on the way through C++."""
        return self._last.text, self._last.fault

    def _general(self, operator: Operator, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Any operator, any operands."""
        if self._ended or is_tracing():
            return operator.call(*args, **kwargs)
        if operator.name in pinning.OPERATORS:
            return pinning.run(operator.name, args[0], self._labels)
        if types and any(kind.__torch_dispatch__ is not _NO_DISPATCH for kind in types):
            # A subclass with operators of its own goes first; what it calls comes here again.
            return NotImplemented
        if operator.kind == "composite" and not operator.has_nested_kernel(args):
            # Only inference mode, and nested tensors, hand composite operators over whole.
            with self.entered():
                return operator.func._op_dk(COMPOSITE, *args, **kwargs)
        with torch._C.DisableTorchFunction():
            if operator.kind == "factory":
                return self._make(operator, args, kwargs)
            return self._compute(operator, args, kwargs)

    def _run_python(self, operator: Operator, args: Any, kwargs: dict[str, Any]) -> Any:
        """An operator whose kernel is Python: the one for where its operands are said to be, with the mode active."""
        devices = [self._labels.device_of(tensor) for tensor in _tensors(args, kwargs)]
        devices += [value for value in kwargs.values() if isinstance(value, _Device)]
        away = any(map(self._machine.owns, devices))
        kind = "PrivateUse1" if self._machine.kind == "npu" else self._machine.kind.upper()
        keys = [kind if away else "CPU", _EXPLICIT.name]
        if operator.func.namespace == "c10d":
            # C++, the same for every backend, and built for those of the build.
            keys.append("CPU")
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        key = next((key for key in keys if has_kernel(operator.func.name(), key)), None)
        if key is None:
            raise device_checks.no_kernel(operator.func, args, kwargs, self._labels.device_of)
        with self.entered():
            return operator.func._op_dk(getattr(torch._C.DispatchKey, key), *args, **kwargs)

    def _run_higher_order(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """An operator that calls functions (`torch.cond`): what these do is seen operator by operator."""
        if self._ended or is_tracing() or not isinstance(func, torch._ops.HigherOrderOperator):
            return func(*args, **kwargs)
        with self.entered(), Applied(higher_order.unnoticed(func)):
            return func.dispatch(_EXPLICIT, *args, **kwargs)

    def _make(self, operator: Operator, args: Any, kwargs: dict[str, Any]) -> Any:
        """A factory: no operand says where, so `device=` does."""
        if kwargs.get("generator") is not None:
            self._check(operator, args, kwargs)
        explicit, kwargs, pinned = self._said(operator, kwargs)
        result = kernels.call(operator, explicit, args, kwargs)
        if explicit is not None and explicit.type == "cpu" and "pin_memory" not in kwargs:
            # Note [Floating storages] in labels.py
            self._label(operator, result, calling_site())
        else:
            self._label(operator, result, self._as_label(explicit))
        if pinned:
            self._labels.pin(result)
        if _observers:
            self._observe("made", operator, result, args, kwargs)
        return result

    def _compute(self, operator: Operator, args: Any, kwargs: dict[str, Any]) -> Any:
        """An operator with operands: they are checked, and the result follows them or `device=`."""
        operands = list(_tensors(args, kwargs))
        found = [self._labels.label_of(tensor) for tensor in operands]
        floating = None
        if any(type(label) is Floating for label in found):
            floating = self._settle(operands, found)
            found = [] if floating else [self._labels.label_of(tensor) for tensor in operands]
        devices = set(found)
        explicit, kwargs, pinned = self._said(operator, kwargs)
        device = next(iter(devices)) if len(devices) == 1 else None
        away = next(filter(self._machine.owns, found), None)
        if away is not None and _META in devices and explicit is None:
            return self._compute_on_meta(operator, args, kwargs, away)
        if away is not None or kwargs.get("generator") is not None:
            device = self._check(operator, args, kwargs if explicit else _without_device(kwargs))
            if operator.name == NOTHING_TO_DO:
                return None
            if away is not None:
                nondeterministic.check(operator.name, away, args, kwargs)
        result = kernels.call(operator, explicit or device, args, kwargs)
        if operator.fresh:
            self._place(operator, result, args, explicit or device or floating)
        elif away is not None and any(tensor.layout is not torch.strided for tensor in operands):
            # What would be a view, or the same memory, of a dense tensor is new memory of a sparse one.
            for tensor in _tensors((result,), _NO_KEYWORDS):
                self._labels.set_device(tensor, found[0])
        if pinned:
            self._labels.pin(result)
        if len(devices) > 1 or (explicit is not None and self._explicit.target is None):
            self._note_crossings(result, operands)
        if _observers:
            moved = explicit is not None and operator.name == "aten::_to_copy"
            self._observe("moved" if moved else operator.event, operator, result, args, kwargs)
        return result

    def _compute_on_meta(self, operator: Operator, args: Any, kwargs: dict[str, Any], device: torch.device) -> Any:
        """With an operand on the meta device no wrapper compares devices, only the operator itself does."""
        try:
            result = operator.call(*args, **kwargs)
        except RuntimeError as error:
            raise device_checks.on_meta(error, operator.func, args, kwargs, self._labels.device_of) from None
        if operator.fresh and all(t.device.type != "meta" for t in _tensors((result,), _NO_KEYWORDS)):
            self._label(operator, result, device)
        return result

    def _check(self, operator: Operator, args: Any, kwargs: dict[str, Any]) -> torch.device | None:
        return device_checks.check(operator.func, args, kwargs, self._labels.device_of)

    def _said(self, operator: Operator, kwargs: dict[str, Any]) -> tuple[torch.device | None, dict[str, Any], bool]:
        """What the call itself says about the device, the arguments for the CPU, and whether memory is to be pinned.

        The Python bindings of factories pass `pin_memory`, code in C++ that allocates like another tensor does not
        (2.6 to 2.13): where it is missing, a device "cpu" may be that of a tensor which only lies there in truth, and
        says nothing.
        """
        if operator.name == "aten::_to_copy" and self._explicit.target is not None:
            return self._explicit.target, kwargs, False
        device = kwargs.get("device")
        if device is None:
            return None, kwargs, False
        pinned = bool(kwargs.get("pin_memory"))
        if self._machine.owns(device):
            if pinned:
                raise RuntimeError("Only dense CPU tensors can be pinned")
            return self._machine.complete(device), {**kwargs, "device": self._machine.host}, False
        says_nothing = "pin_memory" not in kwargs or operator.name in _MADE_OF_PARTS
        if device.type == "cpu" and says_nothing and operator.kind != "factory" and not self._explicit.told:
            return None, kwargs, False
        return device, {**kwargs, "pin_memory": False} if pinned else kwargs, pinned

    def _settle(self, operands: list[_Tensor], found: list[Any]) -> Floating | None:
        """Give floating operands a device; return their label if all float on. Note [Floating storages]."""
        site = calling_site()
        settled = [label for label in found if type(label) is not Floating]
        device = next(filter(self._machine.owns, settled), None)
        for tensor, label in zip(operands, found, strict=True):
            if type(label) is Floating and (settled or label != site):
                self._labels.set_label(tensor, device if label == site else None)
        return None if settled or any(label != site for label in found) else site

    # -- results ---------------------------------------------------------------------------------------------------

    def _place(self, operator: Operator, result: Any, args: Any, where: torch.device | Floating | None) -> None:
        """Label what the operator made: all alike, or, where nothing says where, each by itself."""
        if where is not None:
            self._label(operator, result, where if isinstance(where, Floating) else self._as_label(where))
            return
        devices = device_checks.result_devices(operator.func, args, self._labels.device_of)
        for tensor, device in zip(_tensors((result,), _NO_KEYWORDS), devices or (), strict=False):
            self._labels.set_device(tensor, device)

    def _label(self, operator: Operator, result: Any, label: torch.device | Floating | None) -> None:
        returned = (result,) if isinstance(result, _Tensor) or len(operator.fresh) == 1 else result
        if not isinstance(returned, list | tuple):
            return
        for place in operator.fresh:
            if place < len(returned):
                for tensor in _tensors((returned[place],), _NO_KEYWORDS):
                    self._labels.set_label(tensor, label)

    def _as_label(self, device: torch.device | None) -> torch.device | None:
        return device if device is not None and self._machine.owns(device) else None

    def _note_crossings(self, result: Any, operands: list[_Tensor]) -> None:
        if not torch.is_grad_enabled():
            return
        first = next(_tensors((result,), _NO_KEYWORDS), None)
        if first is None:
            return
        device = self._labels.device_of(first)
        for operand in operands:
            if operand.requires_grad and (there := self._labels.device_of(operand)) != device:
                self._edges.note(first, operand, there)

    def _observe(self, event: observers.EventKind, operator: Operator, result: Any, args: Any, kwargs: Any) -> None:
        results = (result,) if type(result) is _Tensor else tuple(_tensors((result,), _NO_KEYWORDS))
        if results:
            if operator.plain:
                operands = tuple([value for value in args if isinstance(value, _Tensor)])
            else:
                operands = tuple(_tensors(args, kwargs))
            observers.notify(event, operator.name, results, operands)


def _without_device(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name != "device"}


def is_tracing() -> bool:
    """Whether fake tensors are in use (export, compilers): then nothing runs, and devices are only names."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None


def _tensors(args: Iterable[Any], kwargs: dict[str, Any]) -> Iterator[_Tensor]:
    """The tensors among arguments or results, lists taken apart."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, _Tensor):
            yield value
        elif isinstance(value, list | tuple):
            for item in value:
                if isinstance(item, _Tensor):
                    yield item
