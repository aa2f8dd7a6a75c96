"""Finds the tensors that moving passes by: in plain objects, object arrays, iterators, keys, modules' attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from samedevice.errors import LeftBehind
from samedevice.texts import Text, say
from samedevice.trees.containers import KINDS
from samedevice.trees.inside import INSIDE
from samedevice.trees.kinds import OPAQUE
from samedevice.trees.path import Path, attribute
from samedevice.trees.walk import walk

__all__ = ["refuse_left_behind"]

_MOST_LISTED = 10


def refuse_left_behind(obj: Any, device: torch.device, root: str) -> None:
    """Raise if a move of `obj` to `device` would leave tensors behind.

    Args:
        obj: nested data.
        device: where it is to go.
        root: the expression for `obj` in the message.

    Raises:
        LeftBehind: with the path of each.
    """
    found = list(_left_behind(obj, device, root))
    if not found:
        return
    raise LeftBehind(
        say(
            "moving to {device} would leave behind:{places}\n"
            "Mend: samedevice.register_container(TheClass) opens a class of your own; an optimizer's state follows its "
            "parameters by samedevice.sync_optimizer; turn an iterator into a list. Nothing was changed.",
            device=str(device),
            places=_listed(found),
        )
    )


def _listed(found: list[tuple[Path, Text]]) -> str:
    """The places, a line each; one text holds those before it, so that each is translated."""
    text: str = ""
    for path, what in found[:_MOST_LISTED]:
        text = say("{before}\n  {path}: {what}", before=text, path=str(path), what=what)
    if (more := len(found) - _MOST_LISTED) > 0:
        text = say("{before}\n  and {number} more", before=text, number=more)
    return text


def _is_a(cls: type, value: Any) -> bool:
    """Whether `value` is one in truth: mocks and proxies only say so, through `__class__`."""
    return issubclass(type(value), cls)


def _left_behind(obj: Any, device: torch.device, root: str) -> Iterator[tuple[Path, Text]]:
    for path, value in walk(obj, root):
        if _is_a(nn.Module, value):
            yield from _unregistered(value, path, device)
        elif KINDS[type(value)] is OPAQUE:
            yield from _inside(value, path, device)
        elif isinstance(value, dict):
            for key in value:
                if _is_a(Tensor, key) and key.device != device:
                    yield path, say("a key is a tensor on {device}", device=str(key.device))


def _inside(obj: Any, path: Path, device: torch.device) -> Iterator[tuple[Path, Text]]:
    for inner, value in walk(obj, path, kinds=INSIDE):
        if _is_a(Tensor, value):
            if value.device != device:
                yield inner, say("a tensor on {device}", device=str(value.device))
        elif _is_a(nn.Module, value):
            if any(tensor.device != device for tensor in (*value.parameters(), *value.buffers())):
                yield inner, say("a module that is not on {device}", device=str(device))
        elif isinstance(value, Iterator) and not hasattr(value, "fileno"):
            yield inner, say("a {type}, which cannot be looked into", type=type(value).__name__)


def _unregistered(module: nn.Module, path: Path, device: torch.device) -> Iterator[tuple[Path, Text]]:
    """Tensors in plain attributes, which `Module.to` does not know."""
    for name, part in module.named_modules():
        here = path
        for step in filter(None, name.split(".")):
            here = here / attribute(step)
        plain = {key: value for key, value in vars(part).items() if key not in ("_parameters", "_buffers", "_modules")}
        for key, value in plain.items():
            yield from _inside(value, here / attribute(key), device)
