"""What lies inside any object, reachable or not for those who move data: a look that changes nothing.

Containers are opened as `trees` opens them. Whatever else has attributes is opened by its instance dictionary and its
slots, below `__getattr__` and properties, so that no code of its class runs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

from samedevice.trees.attributes import AttributesOf
from samedevice.trees.containers import KINDS
from samedevice.trees.inside import INSIDE
from samedevice.trees.kinds import LEAF, Container
from samedevice.trees.path import Path, Step

__all__ = ["is_object", "parts", "tensors_inside"]

_CLOSED = (
    *(torch.Tensor, torch.optim.Optimizer, torch.jit.ScriptModule, functools.partial),
    *(torch.utils.data.DataLoader, torch.utils.data.Dataset),
)
"""Not opened: they hold no tensor of the one who holds them, or what they hold is meant to stay where it is."""


def parts(value: Any) -> Iterator[tuple[Step | None, Any]]:
    """The parts of an object and the step to each; none of a tensor, a module, a string, a function or a class.

    Args:
        value: any object.

    Yields:
        Steps and parts, in order. A step is None where the part is the object itself to its user.
    """
    container = INSIDE[type(value)]
    if not isinstance(container, Container) or isinstance(value, _CLOSED):
        return
    foreign = KINDS[type(value)] is LEAF
    # Not zip(strict=True): a registered class may name its parts anew each time.
    for step, part in zip(container.steps(value), container.children(value), strict=False):
        yield None if foreign and _is_inner_store(step, part) else step, part


def is_object(value: Any) -> bool:
    """Whether `value` is opened by its attributes, as a dataclass or any helper object is and a list is not."""
    return isinstance(INSIDE[type(value)], AttributesOf)


def tensors_inside(value: Any, path: Path) -> Iterator[tuple[Path, torch.Tensor]]:
    """Every tensor in `value`, however deep, each once.

    Args:
        value: any object; it may contain itself.
        path: what to call it.

    Yields:
        The path to each tensor and the tensor, in order.
    """
    seen: dict[int, Any] = {}
    stack = [(path, value)]
    while stack:
        path, value = stack.pop()
        if id(value) in seen:
            continue
        # Held while it is remembered: a part that is made when asked for must not leave its id to the next.
        seen[id(value)] = value
        if isinstance(value, torch.Tensor):
            yield path, value
        else:
            stack += [(path / step, part) for step, part in reversed(list(parts(value)))]


def _is_inner_store(step: Step | None, part: Any) -> bool:
    """Whether a part is the whole to its user: the dict in `TensorDict._tensordict`, so that a path reads `td["x"]`."""
    return step is not None and str(step.key).startswith("_") and not isinstance(part, torch.Tensor)
