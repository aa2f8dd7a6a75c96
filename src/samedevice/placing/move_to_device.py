"""Moves nested data of any shape to a device: `move_to_device`, the public entrance.

What each kind of data becomes stands in docs/moving.md. How a container is opened is the business of `trees`; the
moving is done by `quick_move` where it can be and by `careful_move` where not.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

from samedevice.devices import parse
from samedevice.placing.argument import argument_text
from samedevice.placing.careful_move import careful_move, move_error
from samedevice.placing.left_behind import refuse_left_behind
from samedevice.placing.quick_move import quick_move
from samedevice.trees.replace import PartError

if TYPE_CHECKING:
    from torch import Tensor, UntypedStorage

    from samedevice.devices import DeviceLike

__all__ = ["move_to_device"]

T = TypeVar("T")

_WAITED_FOR = ("cpu", "mps")
"""Targets for which `non_blocking` is not passed on: the data could be read before it has arrived.

Source: PyTorch's tutorial "A guide on good usage of non_blocking and pin_memory()": a copy to the CPU must be
synchronised before the CPU reads it; https://github.com/pytorch/pytorch/issues/139550 for mps.
"""


def move_to_device(obj: T, device: DeviceLike, *, non_blocking: bool = False, strict: bool = False) -> T:
    """Move every tensor in nested data to a device.

        batch = move_to_device(batch, "cuda")     # {"image": [8, 3, 224, 224], "targets": [{"boxes": …}, …]}

    Args:
        obj: nested data: tensors, modules and parameters in containers of any kind and depth.
        device: a name, a `torch.device`, or the index of an accelerator.
        non_blocking: as for `Tensor.to`, where that is safe; copies to the CPU are always waited for.
        strict: refuse to move anything if something would be left behind in a place that moving does not change.

    Returns:
        The same structure, each container of the same type, tensors on `device`; shapes and dtypes unchanged. What
        does not change is the very same object; so is `obj` itself where everything is there already. The input is
        left as it was, but for modules and parameters, which are moved in place as `Module.to` does.

    Raises:
        UnknownDevice: `device` names no device, e.g. "gpu".
        UnavailableDevice: `device` is not on this machine.
        LeftBehind: with `strict`, tensors would be left behind.
        MoveError: something could not be moved; the message gives its path. Nothing is changed then.
    """
    target = parse(device)
    if strict:
        refuse_left_behind(obj, target, _name_of_argument())
    asynchronous = non_blocking and target.type not in _WAITED_FOR
    done: dict[UntypedStorage, tuple[Tensor, Tensor]] = {}
    try:
        return quick_move(obj, target, asynchronous, done)  # type: ignore[no-any-return]
    except Exception:
        # Whatever it was, it is met again below, where an error gets its path.
        pass
    try:
        moved_before = {id(original): copy for original, copy in done.values()}
        return careful_move(obj, target, asynchronous, moved_before)  # type: ignore[no-any-return]
    except PartError as error:
        cause = error.__cause__
        raise move_error(obj, _name_of_argument(), error.part, cause, target) from cause


def _name_of_argument() -> str:
    return argument_text(sys._getframe(2), "move_to_device")
