"""A module that moves what it is given: a first aid for code that cannot be mended at once.

Each forward's inputs are moved to the module's device before the module sees them, and the user is told, once for each
line that calls it, what was moved. A hook of PyTorch's own does it, so it can be taken off without a trace.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from samedevice.errors import UsageError
from samedevice.placing.blame import listed
from samedevice.placing.inside import tensors_inside
from samedevice.placing.lengths import has_recurrence, keep_lengths
from samedevice.placing.module_tensors import instance_attributes, registered_tensors
from samedevice.placing.move_to_device import move_to_device
from samedevice.texts import say, say_number, shown
from samedevice.trees.path import Path, item
from samedevice.usercode import user_frame

__all__ = ["AlignedInputs", "align_inputs", "is_aligned"]


def align_inputs(model: nn.Module) -> AlignedInputs:
    """Have a module move its inputs to its own device.

        aligned = samedevice.align_inputs(model)      # model.to("cuda") may come before or after
        model(images)                                 # images, on the CPU: moved, and a warning names them
        aligned.remove()                              # as before

    Positional and keyword arguments are moved as `move_to_device` moves them, nested or not. Where the module is on
    several devices, inputs go to the first parameter's, for that is where a forward begins. A module with an RNN, LSTM
    or GRU keeps its lengths on the CPU, where `pack_padded_sequence` wants them.

    Args:
        model: the module. Only its own inputs are moved, not those of the modules within.

    Returns:
        A handle: `remove()` undoes it, and so does leaving a `with` block. It also stands for the module: it can be
        called, and has its attributes.

    Raises:
        UsageError: `model` is no module.
    """
    if not isinstance(model, nn.Module):
        raise UsageError(say("align_inputs takes a module, not {type}", type=type(model).__name__))
    return AlignedInputs(model)


def is_aligned(model: nn.Module) -> bool:
    """Whether the inputs of `model` are moved by `align_inputs`."""
    return any(isinstance(hook, _Aligner) for hook in instance_attributes(model).get("_forward_pre_hooks", {}).values())


class AlignedInputs:
    """What `align_inputs` returns: a handle that stands for the module as well."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._handle = model.register_forward_pre_hook(_Aligner(model), prepend=True, with_kwargs=True)

    def remove(self) -> None:
        """Take the hook off; a second time does nothing."""
        self._handle.remove()

    def __enter__(self) -> AlignedInputs:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.model(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        # While unpickling or copying there is no model yet; asking for it would ask again, for ever.
        if name in ("model", "_handle") or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return getattr(self.model, name)


class _Aligner:
    """The hook. It keeps no reference to its module, so that the two can be copied and pickled together."""

    def __init__(self, model: nn.Module) -> None:
        self.keeps_lengths = has_recurrence([model])
        self.warned: set[tuple[str, int]] = set()

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        device = _entry(module)
        if device is None:
            return None
        inputs = (args, kwargs)
        moved = move_to_device(inputs, device)
        if moved is inputs:
            return None
        paths = _paths(module, args, kwargs)
        before = _tensors(paths, inputs)
        if self.keeps_lengths:
            moved = keep_lengths(before, _tensors(paths, moved), moved)
        after = _tensors(paths, moved)
        changed = [(str(path), old) for (path, old), (_, new) in zip(before, after, strict=True) if new is not old]
        if changed:
            self._warn(type(module).__name__, changed, device)
        return moved

    def _warn(self, module: str, changed: Sequence[tuple[str, torch.Tensor]], device: torch.device) -> None:
        frame = user_frame()
        site = (frame.f_code.co_filename, frame.f_lineno) if frame else ("<unknown>", 0)
        if site in self.warned:
            return
        self.warned.add(site)
        names = [name for name, _ in changed]
        origins = listed(list(dict.fromkeys(str(tensor.device) for _, tensor in changed)))
        message = say_number(
            "{module} is on {device} and was given {names} on {origins}: moved by align_inputs. "
            "Mend: move it to {device} before the call.",
            "{module} is on {device} and was given {names} on {origins}: moved by align_inputs. "
            "Mend: move them to {device} before the call.",
            len(names),
            module=module,
            device=str(device),
            names=listed(names),
            origins=origins,
        )
        warnings.warn_explicit(shown(message), UserWarning, *site)


def _entry(module: nn.Module) -> torch.device | None:
    """The device of the first parameter, else of the first buffer; what is on meta has no values and no say."""
    buffer = None
    for found in registered_tensors(module, ""):
        if found.tensor.device.type != "meta":
            if found.kind == "parameter":
                return found.tensor.device
            buffer = buffer or found.tensor.device
    return buffer


def _paths(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Path]:
    """What to call each argument: as `forward` calls its parameters."""
    try:
        parameters = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [Path(p.name) for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = Path("args")
    return [
        *(named[index] if index < len(named) else rest / item(index - len(named)) for index in range(len(args))),
        *map(Path, kwargs),
    ]


def _tensors(paths: Sequence[Path], given: tuple[tuple[Any, ...], dict[str, Any]]) -> list[tuple[Path, torch.Tensor]]:
    args, kwargs = given
    values = [*args, *kwargs.values()]
    return [found for path, value in zip(paths, values, strict=True) for found in tensors_inside(value, path)]
