"""Who wants to know what happens to tensors while a simulation runs: tracing subscribes here to record origins.

Nobody subscribed, nothing is built or called. An observer sees events after the fact and must not change tensors, nor
keep them: a new tensor that somebody holds is not handed on by C++, which gives the program another object in its
place (torch/csrc/autograd/variable.h, `make_variable`). Weak references are fine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import torch

__all__ = ["Event", "EventKind", "Observer", "active", "notify", "subscribe", "unsubscribe"]

EventKind: TypeAlias = Literal["made", "moved", "computed", "loaded"]


class Event(NamedTuple):
    """Tensors came to be.

    Attributes:
        kind: made (from no tensor), moved (to a device, or found there already), computed (from operands), loaded.
        operation: PyTorch's name, e.g. "aten::zeros"; "aten::_to_copy" for all moves.
        results: the tensors, their devices already right.
        operands: the tensor arguments, lists taken apart; of a move that changed nothing, the result itself.
    """

    kind: EventKind
    operation: str
    results: tuple[torch.Tensor, ...]
    operands: tuple[torch.Tensor, ...]


Observer: TypeAlias = Callable[[Event], Any]

active: list[Observer] = []
"""Read by the interception itself on each operator: empty in the ordinary case. Change it through the functions."""


def subscribe(observer: Observer) -> Callable[[], None]:
    """Call `observer` with each `Event` from now on, in the thread where it happens.

    Args:
        observer: what it raises surfaces in the observed program.

    Returns:
        A function that unsubscribes it.
    """
    active.append(observer)
    return lambda: unsubscribe(observer)


def unsubscribe(observer: Observer) -> None:
    """Stop calling `observer`; once for each time that it was subscribed. Unknown ones are ignored."""
    if observer in active:
        active.remove(observer)


def notify(
    kind: EventKind, operation: str, results: tuple[torch.Tensor, ...], operands: tuple[torch.Tensor, ...] = ()
) -> None:
    """Tell all observers. Callers look at `active` first, so that nothing is built for nobody."""
    event = Event(kind, operation, results, operands)
    for observer in tuple(active):
        observer(event)
