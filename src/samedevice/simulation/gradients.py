"""Autograd's own device rules: which gradient may reach which tensor.

On a real machine the engine compares each gradient with the tensor that it is for, moves it where it has no dimensions,
and refuses it otherwise (torch/csrc/autograd/engine.cpp, `validate_outputs`). Here all is on the CPU for C++, so the
engine sees nothing; this module does its work at the four places where a gradient can come from elsewhere: the
gradients given to `backward`, custom Functions, hooks, and operators whose operands were on several devices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
import torch.autograd.graph

from samedevice.errors import NotSimulated
from samedevice.simulation import hooks
from samedevice.simulation.labels import Floating, LabelTable, is_active
from samedevice.simulation.patching import Patch
from samedevice.simulation.refusing import refuse
from samedevice.texts import say

__all__ = ["CrossDeviceEdges", "patches"]

_NO_DEVICE_THREAD = (
    "device_ready_queues_",
    "Cannot access accelerator device when none is available",
    "hasPrimaryContext expects a valid device index",
    "Backend doesn't support acquiring a default stream",
    "PyTorch is not linked with support for",
)
"""What the engine says where it is to work for a device that C++ does not have, 2.6 to 2.14."""
_DEVICES = "_samedevice_devices"
"""On the context of a custom Function: where its tensor arguments were."""
_RESULTS = "_samedevice_results"
"""On the context of a custom Function: where its results were."""


_NOT_MOVED = frozenset(f"{kind}ScatterBackward0" for kind in ("Select", "Slice", "Diagonal", "AsStrided"))
"""They copy from another device, and give its gradient where the result is (tools/autograd/derivatives.yaml)."""


class _Crossing(NamedTuple):
    """A result whose gradient must go back to another device than its own."""

    thread: int
    result: torch.Tensor
    operand: torch.Tensor
    device: torch.device


class CrossDeviceEdges:
    """Takes gradients back to the device of the operand that they are for.

    An operator below autograd sees its operands, while the node that will compute their gradients is made after it
    has returned. So it is noted, and the node gets its hook when the next operator comes or backward begins.

    Attributes:
        pending: what is noted and has no hook yet; empty in the ordinary case. It holds tensors, since both may be
            temporary views (`x[0] = y`), for no longer than until the thread's next operator.
    """

    def __init__(self, labels: LabelTable) -> None:
        self._labels = labels
        self.pending: list[_Crossing] = []

    def note(self, result: torch.Tensor, operand: torch.Tensor, device: torch.device) -> None:
        """The gradient of `operand`, which is on `device`, will be computed by the node that makes `result`."""
        self.pending.append(_Crossing(threading.get_ident(), result, operand, device))

    def flush(self) -> None:
        """Hook the nodes that were noted in this thread and exist by now."""
        thread = threading.get_ident()
        mine = [crossing for crossing in self.pending if crossing.thread == thread]
        self.pending[:] = [crossing for crossing in self.pending if crossing.thread != thread]
        for crossing in mine:
            bring_back(crossing.result, crossing.operand, crossing.device, self._labels)


def bring_back(result: torch.Tensor, operand: torch.Tensor, device: torch.device, labels: LabelTable) -> None:
    """Hook the node that computed `result` so that the gradient for `operand` arrives on `device`.

    Args:
        result: what the operator returned or wrote to.
        operand: what it read, on another device.
        device: where that is.
        labels: of the simulation, after whose end the hook does nothing.
    """
    for node in _nodes_of(result):
        places = [i for i, edge in enumerate(node.next_functions) if _leads_to(edge, operand)]
        if places:
            node.register_hook(_Moving(places, device, labels, node.name()))
            return


def _nodes_of(result: torch.Tensor) -> Iterator[Any]:
    """The node of a result; behind it, for a write into a view, the one that does the write (CopySlices)."""
    if result.grad_fn is not None:
        yield result.grad_fn
        yield from (node for node, _ in result.grad_fn.next_functions if node is not None)


def _leads_to(edge: tuple[Any, int], operand: torch.Tensor) -> bool:
    node, output = edge
    if node is None:
        return False
    if operand.grad_fn is None:
        return getattr(node, "variable", None) is operand
    return node is operand.grad_fn and output == operand.output_nr


class _Moving(hooks.OwnHook):
    """Takes the gradients at `places` of a node to `device`, or refuses them where that node's formula does not."""

    def __init__(self, places: list[int], device: torch.device, labels: LabelTable, node: str) -> None:
        self._places = places
        self._device = device
        self._labels = labels
        self._node = node

    def __call__(self, inputs: tuple[Any, ...], _outputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        # A graph may outlive its simulation: then all is on the CPU.
        if not is_active(self._labels):
            return None
        return tuple(self._moved(g, i) if i in self._places and g is not None else g for i, g in enumerate(inputs))

    def _moved(self, gradient: torch.Tensor, index: int) -> torch.Tensor:
        if self._node in _NOT_MOVED:
            accepted: torch.Tensor = _accepted(self._labels, self._device, gradient, index, self._node)
            return accepted
        return gradient.to(self._device)


def patches(labels: LabelTable, edges: CrossDeviceEdges) -> Iterator[Patch]:
    """What stands in for the engine's own checks.

    Args:
        labels: where tensors are.
        edges: flushed before backward begins.

    Yields:
        Patches of `backward`, custom Functions and hooks.
    """
    run_backward = torch.autograd.graph._engine_run_backward

    def _engine_run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
        edges.flush()
        gradients, *rest = args
        checked = _root_gradients(labels, t_outputs, gradients)
        try:
            return run_backward(t_outputs, checked, *rest, **kwargs)
        except RuntimeError as error:
            if any(text in str(error) for text in _NO_DEVICE_THREAD):
                raise NotSimulated(say("backward over fake tensors is not simulated: they have no values.")) from error
            raise

    # Defined in graph, imported by name into torch.autograd; both since 2.1.
    yield Patch(torch.autograd.graph, "_engine_run_backward", _engine_run_backward)
    yield Patch(torch.autograd, "_engine_run_backward", _engine_run_backward)
    yield from _function_patches(labels)
    yield from hooks.patches(labels)


def _root_gradients(labels: LabelTable, outputs: Any, gradients: Iterable[Any]) -> tuple[Any, ...]:
    pairs = enumerate(zip(outputs, gradients, strict=False))
    return tuple(_accepted(labels, output, gradient, index, None) for index, (output, gradient) in pairs)


def _accepted(labels: LabelTable, target: Any, gradient: Any, index: int, node: str | None) -> Any:
    """The gradient as the engine would accept it for a tensor, or for what is on a device."""
    if not isinstance(gradient, torch.Tensor) or target is None:
        return gradient
    device = labels.device_of(target) if isinstance(target, torch.Tensor) else target
    found = labels.device_of(gradient)
    if found == device:
        return gradient
    if gradient.dim() == 0:
        return gradient.to(device)
    values = {"index": index, "device": device, "grad_device": found}
    raise refuse(
        "invalid-gradient",
        "aten::backward",
        [("grad", gradient)],
        labels,
        **values,
        **({"node_function": node} if node else {}),
    )


def _function_patches(labels: LabelTable) -> Iterator[Patch]:
    """Custom Functions: note where the arguments were, look where the gradients are."""
    backward_class: Any = torch.autograd.function.BackwardCFunction
    # A classmethod of Python's until 2.13, of C's since 2.14.
    apply_forward = vars(torch.autograd.Function)["apply"].__get__

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        result = apply_forward(None, cls)(*args, **kwargs)
        outputs = result if isinstance(result, tuple) else (result,)
        for output in outputs:
            node = getattr(output, "grad_fn", None)
            if isinstance(node, backward_class):
                setattr(node, _DEVICES, _devices(labels, args))
                setattr(node, _RESULTS, _devices(labels, outputs))
                break
        return result

    def checked(apply_backward: Any) -> Callable[..., Any]:
        def apply(self: Any, *args: Any) -> Any:
            _place_zeros(labels, args, getattr(self, _RESULTS, ()))
            result = apply_backward(self, *args)
            devices = getattr(self, _DEVICES, None)
            if devices is None:
                return result
            gradients = result if isinstance(result, tuple) else (result,)
            accepted = tuple(_function_gradients(labels, self, gradients, devices))
            return accepted if isinstance(result, tuple) else accepted[0]

        return apply

    yield Patch(torch.autograd.Function, "apply", classmethod(apply))
    # The engine calls `apply_boxed` for some Functions since 2.13.
    for name in ("apply", "apply_boxed"):
        if hasattr(backward_class, name):
            yield Patch(backward_class, name, checked(getattr(backward_class, name)))


def _devices(labels: LabelTable, values: Iterable[Any]) -> tuple[torch.device | None, ...]:
    return tuple(labels.device_of(value) if isinstance(value, torch.Tensor) else None for value in values)


def _place_zeros(labels: LabelTable, gradients: tuple[Any, ...], devices: tuple[torch.device | None, ...]) -> None:
    """The zeros that the engine makes for a result without a gradient are where the result is.

    Source: torch/csrc/autograd/python_function.cpp, `PyNode::apply` with `materialize_grads`, 2.6 to 2.14.
    """
    for gradient, device in zip(gradients, devices, strict=False):
        if isinstance(gradient, torch.Tensor) and type(labels.label_of(gradient)) is Floating:
            labels.set_device(gradient, device)


def _function_gradients(
    labels: LabelTable, node: Any, gradients: tuple[Any, ...], devices: tuple[torch.device | None, ...]
) -> Iterator[Any]:
    """One gradient for each argument of forward; the engine counts only those that are tensors."""
    edges = node.next_functions
    index = -1
    for place, gradient in enumerate(gradients):
        device = devices[place] if place < len(devices) else None
        index += device is not None
        needed = device is not None and index < len(edges) and edges[index][0] is not None
        yield _accepted(labels, device if needed else None, gradient, index, node.name())
