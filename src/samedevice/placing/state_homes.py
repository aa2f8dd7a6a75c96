"""On which device does a tensor of an optimizer's state belong? By the rules of the torch that is installed.

The rules are not a list of names. A class of `torch.optim` is asked: it lays out its state for a parameter on `meta`,
and what it then keeps on the CPU (Adam's `step`, NAdam's `mu_product`) belongs on the CPU wherever parameters are; the
rest belongs beside its parameter (all of ASGD's, its `step` too). Any other optimizer is held to what
`Optimizer.load_state_dict` does with its state; none of its code is run.

Nothing here moves a tensor or changes an optimizer.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

__all__ = ["Home", "home_of", "layout"]

CPU = torch.device("cpu")


def layout(optimizer_class: type) -> Mapping[str, bool]:
    """Which entries of its state `optimizer_class` makes on the CPU for a parameter that lives elsewhere.

    Args:
        optimizer_class: a class; the nearest `torch.optim` class among its bases is asked.

    Returns:
        For each key of one parameter's state: True where its tensor stays on the CPU. Empty where no base is a
        `torch.optim` class, or where that cannot say (LBFGS and SparseAdam, whose tensors all follow the parameter).

    Source: `_init_group` of each class in torch/optim/*.py, private, 2.0 to 2.13.
    """
    asked = next((base for base in optimizer_class.__mro__ if _is_torch_optimizer(base)), None)
    if asked is None or not hasattr(asked, "_init_group"):
        return {}
    try:
        return _ask(asked)
    except Exception:  # a later torch with another `_init_group`: the rules of `load_state_dict` are left
        return {}


@functools.cache
def _ask(torch_optimizer: type) -> Mapping[str, bool]:
    parameter = torch.nn.Parameter(torch.empty(2, 2, device="meta"))
    parameter.grad = torch.empty_like(parameter)
    # The user's default device must not show in what is called the class's own choice; see `_host`.
    with CPU, torch.no_grad():
        fresh = torch_optimizer([parameter])
        lists: list[list[Any]] = [[] for _ in list(inspect.signature(fresh._init_group).parameters)[1:]]
        fresh._init_group(fresh.param_groups[0], *lists)
    return {
        key: value.device == CPU
        for key, value in fresh.state[parameter].items()
        if isinstance(key, str) and isinstance(value, torch.Tensor)
    }


def _is_torch_optimizer(base: type) -> bool:
    of_torch = f"{base.__module__}.".startswith("torch.optim.")
    return of_torch and issubclass(base, torch.optim.Optimizer) and base is not torch.optim.Optimizer


class Home(NamedTuple):
    """Where a tensor of state belongs."""

    device: torch.device
    kind: str
    """state; host state, which stays on the CPU whatever the parameter's device; free state, which may be on both."""


def home_of(
    key: str | None,
    tensor: torch.Tensor,
    beside: torch.device,
    *,
    optimizer_class: type,
    group: Mapping[str, Any],
    others_astray: bool | None,
) -> Home:
    """Where one tensor of a parameter's state belongs.

    Args:
        key: the last string key on the way to it, e.g. "exp_avg".
        tensor: the tensor.
        beside: the device of its parameter.
        optimizer_class: the optimizer's class.
        group: the parameter's group, for `capturable` and `fused`.
        others_astray: whether the other state of that parameter is away from it; None where there is none to tell.

    Returns:
        The CPU for Adam's `step`, for one, and for any `step` there of an optimizer that torch does not know.

    Source: torch/optim/optimizer.py, `_process_value_according_to_param_policy`, 2.6 to 2.13.
    """
    if group.get("capturable") or group.get("fused"):
        return Home(beside, "state")
    known = layout(optimizer_class)
    if known.get(key or "", key == "step" and tensor.device == CPU):
        # Where the user has set a default device, `torch.tensor(0.0)` makes the `step` of some classes there.
        return Home(tensor.device if tensor.device == torch.get_default_device() else CPU, "host state")
    if key in known or beside == CPU or tensor.device != CPU or tensor.dim() > 0 or others_astray:
        return Home(beside, "state")
    # A 0-dim CPU tensor of an optimizer that torch does not know: its choice where the rest is beside the parameter.
    return Home(CPU, "host state") if others_astray is False else Home(beside, "free state")
