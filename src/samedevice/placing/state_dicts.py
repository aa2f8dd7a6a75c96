"""Optimizer state dicts inside nested data, which hold tensors that must not follow the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

__all__ = ["steps_that_stay"]


def steps_that_stay(containers: Iterable[Any]) -> set[int]:
    """The step counters in optimizer state dicts that belong on the CPU, where they are.

    Args:
        containers: all containers of the nested data.

    Returns:
        The ids of these tensors.

    Source: torch/optim/optimizer.py, `Optimizer._process_value_according_to_param_policy`, 2.6 to 2.13: `step` is put
    on its parameter's device only if the group is `capturable` or `fused`; a step elsewhere has to be waited for.
    """
    return {
        id(step)
        for container in containers
        if isinstance(container, dict) and "param_groups" in container and "state" in container
        for step in _steps(container)
        if isinstance(step, Tensor) and step.device.type == "cpu"
    }


def _steps(state_dict: dict[str, Any]) -> Iterable[Any]:
    state, groups = state_dict["state"], state_dict["param_groups"]
    if not isinstance(state, dict) or not isinstance(groups, (list, tuple)):
        return
    for group in groups:
        if isinstance(group, dict) and not group.get("capturable") and not group.get("fused"):
            for key in group.get("params", ()):
                of_parameter = state.get(key)
                if isinstance(of_parameter, dict):
                    yield of_parameter.get("step")
