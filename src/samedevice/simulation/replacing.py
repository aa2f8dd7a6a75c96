"""A function that stands in for another and is taken for it: equal to it, with its hash, name and documentation.

Tables of handlers keyed by `torch.Tensor.to` or `torch.zeros`, made by PyTorch or a tensor subclass before the
simulation, must find their entry when they are asked with the stand-in.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch.jit._builtins

from samedevice.simulation.patching import ItemPatch

__all__ = ["Method", "Replacement", "known_to_scripts"]


class Replacement:
    """A function, which does not become a method where a class has it, as functions written in C do not.

    Args:
        original: what it is equal to.
        body: what a call runs.
    """

    def __init__(self, original: Any, body: Callable[..., Any]) -> None:
        functools.update_wrapper(self, original)
        self._original = original
        self._body = body

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the body."""
        return self._body(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self is other or self._original == other

    def __hash__(self) -> int:
        return hash(self._original)

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> Any:
        return self._original.__reduce_ex__(4)


class Method(Replacement):
    """A method."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self._body, instance)


def known_to_scripts(original: Any, stand_in: Any) -> Iterator[ItemPatch]:
    """TorchScript knows the functions that it may call by their identity: torch/jit/_builtins.py, 2.6 to 2.14.

    Args:
        original: a function of PyTorch's.
        stand_in: what scripts find in its place.

    Yields:
        A change that lets them call it, if they may call the original.
    """
    table = torch.jit._builtins._get_builtin_table()
    operator = table.get(id(original))
    if operator is not None:
        yield ItemPatch(table, id(stand_in), operator)
