"""Hooks of autograd: a gradient that a hook returns is of the kind of device that it replaces.

On a real machine C++ compares what each hook returns with what it was given (torch/csrc/autograd/cpp_hook.cpp,
`check_variable_result`, 2.6 to 2.14): hooks of tensors, of the graph's nodes, and through these a module's full
backward hooks. Here all is on the CPU for C++, so each hook is wrapped where it is registered.

Private PyTorch API used here, 2.6 to 2.14: `torch.autograd.function._HookMixin._register_hook`, by which C++ keeps the
hooks of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd.function import _HookMixin

from samedevice.simulation.labels import LabelTable, is_active
from samedevice.simulation.patching import Patch
from samedevice.simulation.refusing import refuse

__all__ = ["OwnHook", "patches"]


class OwnHook:
    """Base of this package's own hooks, which may move gradients."""


def patches(labels: LabelTable) -> Iterator[Patch]:
    """The two places where hooks are registered.

    Args:
        labels: where tensors are.

    Yields:
        One patch for each.
    """
    register_tensor_hook = torch.Tensor.register_hook
    register_node_hook: Any = _HookMixin._register_hook

    def register_hook(self: torch.Tensor, hook: Callable[[torch.Tensor], Any]) -> Any:
        return register_tensor_hook(self, _TensorHook(hook, labels, self.grad_fn))  # type: ignore[no-untyped-call]

    def _register_hook(backward_hooks: Any, hook: Any) -> Any:
        checked = hook if isinstance(hook, OwnHook) else _NodeHook(hook, labels)
        return register_node_hook(backward_hooks, checked)

    yield Patch(torch.Tensor, "register_hook", register_hook)
    yield Patch(_HookMixin, "_register_hook", staticmethod(_register_hook))


class _Checked:
    """A hook, and its name where it has one: C++ asks for it."""

    def __init__(self, hook: Callable[..., Any], labels: LabelTable) -> None:
        self._hook = hook
        self._labels = labels
        if hasattr(hook, "__name__"):
            self.__name__ = hook.__name__

    def _check(self, before: Any, after: Any) -> None:
        if not (isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor)):
            return
        here, there = self._labels.device_of(before), self._labels.device_of(after)
        if here.type != there.type:
            raise refuse(
                "hook-type",
                "aten::backward",
                [("gradient", before), ("result", after)],
                self._labels,
                hook_text=getattr(self._hook, "__name__", "<unknown>"),
                type=before.type(),
                grad_type=after.type(),
            )


class _NodeHook(_Checked):
    """Of a node: given the gradients that it may replace, and behind them, if it runs after the node, others."""

    def __call__(self, gradients: Any, *others: Any) -> Any:
        results = self._hook(gradients, *others)
        # How many there are C++ looks at first, and tells.
        if isinstance(results, tuple) and len(results) == len(gradients) and is_active(self._labels):
            for before, after in zip(gradients, results, strict=True):
                self._check(before, after)
        return results


class _TensorHook(_Checked):
    """Of a tensor: given the one gradient of the tensor that `node` computed."""

    def __init__(self, hook: Callable[..., Any], labels: LabelTable, node: Any) -> None:
        super().__init__(hook, labels)
        self._node = node

    def __call__(self, gradient: torch.Tensor) -> Any:
        result = self._hook(gradient)
        if isinstance(result, torch.Tensor) and is_active(self._labels):
            self._check(gradient, result)
            if self._node is not None:
                self._expect(self._labels.device_of(gradient), self._labels.device_of(result))
        return result

    def _expect(self, device: torch.device, found: torch.device) -> None:
        """A gradient on another device of the same kind passes here; what the node makes of it is refused there."""
        if found != device:
            handle = self._node.register_hook(_NoneOn(found, device, self._node.name(), self._labels, lambda: handle))


class _NoneOn(OwnHook):
    """Runs once after a node and refuses gradients on a device where its operands are not."""

    def __init__(
        self, device: torch.device, expected: torch.device, node: str, labels: LabelTable, handle: Callable[[], Any]
    ) -> None:
        self._device = device
        self._expected = expected
        self._node = node
        self._labels = labels
        self._handle = handle

    def __call__(self, gradients: tuple[Any, ...], _outputs: Any) -> None:
        self._handle().remove()
        for index, gradient in enumerate(gradients):
            if gradient is not None and gradient.dim() and self._labels.device_of(gradient) == self._device:
                raise refuse(
                    "invalid-gradient",
                    "aten::backward",
                    [("grad", gradient)],
                    self._labels,
                    node_function=self._node,
                    index=index,
                    device=self._expected,
                    grad_device=self._device,
                )
