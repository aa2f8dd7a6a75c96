"""The forms of stand-ins: a table of attributes, a value that is remembered, a call that is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from samedevice.errors import NotSimulated
from samedevice.simulation.patching import Patch, Undoable
from samedevice.texts import say

__all__ = ["Remembered", "Table", "refused", "table"]

Table = dict[str, Any]
"""Attribute -> its stand-in."""


class Remembered(Patch):
    """A value that PyTorch's own code changes in the meantime: it is found again when the patch is installed again."""

    __slots__ = ()

    def undo(self) -> None:
        """Put back what was there before the simulation."""
        self.replacement = vars(self.owner).get(self.name, Patch.ABSENT)
        super().undo()


def table(owner: Any, values: Table) -> Iterator[Undoable]:
    """Replace attributes of `owner`.

    Args:
        owner: a module or class.
        values: what stands in for which attribute; it need not exist.

    Yields:
        The changes, none of them installed yet.
    """
    return (Patch(owner, name, value) for name, value in values.items())


def refused(call: str) -> Callable[..., NoReturn]:
    """A function that says that `call` cannot be simulated.

    Args:
        call: as the user writes it, e.g. "torch.cuda.CUDAGraph.replay".
    """

    def refuse(*arguments: Any, **more: Any) -> NoReturn:
        raise NotSimulated(
            say(
                "{call} has no counterpart on a simulated device: it needs the device's own memory and code.", call=call
            )
        )

    return refuse
