"""Device names: read them, complete them, compare them, and say what is here.

`split` reads a name without torch. Everything else asks torch at the time of the call, through its public attributes
(`torch.cuda.device_count()` and its kin), so that a simulation that replaces those is believed like a real machine.
Nothing here touches a tensor, and nothing is initialised that a move to that device would not initialise anyway.
"""

from __future__ import annotations

import difflib
import re
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

from samedevice.errors import UnavailableDevice, UnknownDevice
from samedevice.texts import Text, say, say_number, shown

if TYPE_CHECKING:
    import torch

    DeviceLike: TypeAlias = str | int | torch.device

__all__ = ["available", "complete", "parse", "same", "split"]

_TYPES = (
    # What PyTorch's own error message lists, 2.6 to 2.13; "privateuseone" goes by the name that its backend chose.
    *("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy"),
    *("vulkan", "mps", "meta", "hpu", "mtia", "privateuseone"),
)
_SUGGESTED = ("cpu", "cuda", "mps", "xpu", "meta", "xla", "hpu", "mtia")
_ALWAYS_HERE = ("cpu", "meta")
"""No driver, no index: `torch.empty(1, device="cpu:1").device` is `cpu`, and so for meta."""
_LAST_INDEX = 127
"""PyTorch takes a larger one for another device, 256 for 0. Source: c10/core/Device.h, `DeviceIndex`, 2.6 to 2.13."""
_NICKNAMES = {
    "nvidia": "cuda",
    "rocm": "cuda",
    "amd": "cuda",
    "metal": "mps",
    "apple": "mps",
    "intel": "xpu",
    "tpu": "xla",
}
_PLUGINS = {
    "xla": "torch_xla",
    "hpu": "habana_frameworks.torch",
    "npu": "torch_npu",
    "mlu": "torch_mlu",
    "musa": "torch_musa",
}
"""Backends that live outside torch, and the import that brings each."""
_NAME = re.compile(r"([a-z]\w*)(?::(0|[1-9]\d*))?", re.ASCII)

_parsed: dict[Any, torch.device] = {}
"""Names of devices that are always here: they need no second look."""


def split(name: str) -> tuple[str, int | None]:
    """Split a device name into its type and index, without importing torch.

    Args:
        name: e.g. "cuda" or "cuda:1". Out-of-tree names such as "npu" are known once their backend is imported.

    Returns:
        The type and the index, None where the name has none.

    Raises:
        UnknownDevice: the name is no device.

    Source: c10/core/Device.cpp, `Device::Device(const std::string&)`: no spaces, no upper case, no leading zeros.
    """
    match = _NAME.fullmatch(name)
    kind = match[1] if match else name.partition(":")[0]
    if kind not in _TYPES and kind != _out_of_tree_type():
        raise UnknownDevice(_unknown(name, kind))
    if match is None:
        raise UnknownDevice(
            say(
                '"{name}" is no device: after the colon comes a whole number counted from 0, as in "{kind}:0".',
                name=name,
                kind=kind,
            )
        )
    return kind, None if match[2] is None else int(match[2])


def parse(device: DeviceLike) -> torch.device:
    """The device that is meant, complete with its index, once it is sure that it is here.

    Args:
        device: a name ("cuda", "cuda:1"), a `torch.device`, or the index of an accelerator.

    Returns:
        A device equal to the `.device` of tensors that live there: `parse("cuda") == torch.device("cuda:0")`.

    Raises:
        UnknownDevice: the name is no device, e.g. "gpu"; the message suggests one.
        UnavailableDevice: this machine or this build of torch does not have it; the message says what is here.
        TypeError: neither a name nor a device nor an index.
    """
    try:
        return _parsed[device]
    except (KeyError, TypeError):
        pass
    kind, index = _read(device)
    if kind in _ALWAYS_HERE:
        return _parsed.setdefault(device, _device(kind, index))
    if (count := _count(kind)) == 0 or (index is not None and index >= count):
        raise UnavailableDevice(_unavailable(kind, index, count))
    return _device(kind, index)


def complete(device: DeviceLike) -> torch.device:
    """As `parse`, also for a device that is not here: "cuda" is then "cuda:0".

    Args:
        device: a name, a `torch.device`, or the index of an accelerator.

    Returns:
        The device with its index; cpu and meta have none.

    Raises:
        UnknownDevice: the name is no device.
        UnavailableDevice: an index alone, where there is no accelerator that it could mean.
        TypeError: neither a name nor a device nor an index.
    """
    return _device(*_read(device))


def same(first: DeviceLike, second: DeviceLike) -> bool:
    """Whether two names mean one device: "cuda" is "cuda:0" while that is the current one.

    Args:
        first: a name, a `torch.device`, or an index.
        second: the other one.

    Returns:
        True where tensors on the one are on the other.

    Raises:
        UnknownDevice: one of the names is no device.
    """
    return complete(first) == complete(second)


def available() -> tuple[str, ...]:
    """The names of all devices here, e.g. `("cpu", "cuda:0", "cuda:1", "meta")`.

    Returns:
        cpu first, meta last, between them each accelerator.
    """
    import torch

    kinds = dict.fromkeys(["cuda", "xpu", "mps", "mtia", "hpu", torch._C._get_privateuse1_backend_name()])
    return ("cpu", *(f"{kind}:{index}" for kind in kinds for index in range(_count(kind))), "meta")


def _read(device: DeviceLike) -> tuple[str, int | None]:
    if isinstance(device, str):
        return split(device)
    import torch

    if isinstance(device, torch.device):
        return device.type, device.index
    if isinstance(device, int) and not isinstance(device, bool):
        if device < 0:
            raise UnknownDevice(say("{index} is no device: indices count from 0.", index=device))
        return _accelerator(device), device
    kind = type(device).__name__
    raise TypeError(
        shown(say('a device is a name such as "cuda:0", a torch.device or an index, not {type}', type=kind))
    )


def _device(kind: str, index: int | None) -> torch.device:
    import torch

    if kind in _ALWAYS_HERE:
        return torch.device(kind)
    index = _current_index(kind) if index is None else index
    if index is not None and index > _LAST_INDEX:
        raise UnknownDevice(
            say(
                '"{name}" is no device: PyTorch counts devices from 0 to {last}.',
                name=f"{kind}:{index}",
                last=_LAST_INDEX,
            )
        )
    return torch.device(kind) if index is None else torch.device(kind, index)


def _accelerator(index: int) -> str:
    """The type that a bare index means: the accelerator of this machine."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if torch.accelerator.is_available() and (current := torch.accelerator.current_accelerator()) is not None:
        return current.type
    raise UnavailableDevice(
        say(
            "{index} means device {index} of the accelerator, and this machine has none. Available here: {devices}.",
            index=index,
            devices=_list_here(),
        )
    )


def _backend(kind: str) -> Any:
    """The module that speaks for a type: `torch.cuda`, `torch.npu` …, or None."""
    import torch

    return getattr(torch, kind, None)


def _count(kind: str) -> int:
    """How many devices of that type are here, asked anew each time: a simulation begins and ends."""
    backend = _backend(kind)
    if backend is None or not hasattr(backend, "device_count"):
        # A plugin such as torch_xla has no module in torch; once imported it answers for itself.
        return sys.maxsize if _PLUGINS.get(kind) in sys.modules else 0
    # Once in use, a backend is available; before, its devices may be visible (NVML) and yet not usable (old driver).
    initialised = getattr(backend, "is_initialized", bool)()
    is_available = getattr(backend, "is_available", None)
    if not initialised and is_available is not None and not is_available():
        return 0
    return int(backend.device_count())


def _current_index(kind: str) -> int | None:
    backend = _backend(kind)
    if backend is None or not hasattr(backend, "device_count"):
        return None
    # torch.mps has one device and no `current_device`.
    if not hasattr(backend, "current_device") or _count(kind) == 0:
        return 0
    return int(backend.current_device())


def _out_of_tree_type() -> str | None:
    """The name of an out-of-tree backend, e.g. "npu", where one has registered itself.

    Source: `torch._C._get_privateuse1_backend_name`, 2.6 to 2.13; `torch.utils.rename_privateuse1_backend` sets it.
    """
    torch = sys.modules.get("torch")
    return None if torch is None else torch._C._get_privateuse1_backend_name()


def _suggestion(kind: str) -> str | None:
    wanted = kind.strip().lower()
    if wanted == "gpu":
        return next((name.partition(":")[0] for name in _here_if_loaded() if name not in _ALWAYS_HERE), "cuda")
    close = difflib.get_close_matches(wanted, _SUGGESTED, n=1, cutoff=0.6)
    return _NICKNAMES.get(wanted) or (close[0] if close else None)


def _here_if_loaded() -> tuple[str, ...]:
    return available() if "torch" in sys.modules else ()


def _unknown(name: str, kind: str) -> Text:
    plugin = _PLUGINS.get(kind)
    if plugin is not None:
        return say(
            '"{name}" is a device of {plugin}, which is not imported. Mend: import {plugin} first.',
            name=name,
            plugin=plugin,
        )
    suggestion = _suggestion(kind)
    known = dict.fromkeys([*_SUGGESTED, _out_of_tree_type() or "cpu"])
    known.pop("privateuseone", None)
    if suggestion is not None:
        return say(
            '"{name}" is no device. Did you mean "{near}"? Devices are {devices}; an index may follow, as in "cuda:0".',
            name=name,
            near=suggestion,
            devices=", ".join(known),
        )
    return say(
        '"{name}" is no device. Devices are {devices}; an index may follow, as in "cuda:0".',
        name=name,
        devices=", ".join(known),
    )


def _unavailable(kind: str, index: int | None, count: int) -> Text:
    return say(
        "{name} is not available: {reason}. Available here: {devices}.",
        name=kind if index is None else f"{kind}:{index}",
        reason=_reason(kind, count),
        devices=_list_here(),
    )


def _reason(kind: str, count: int) -> Text:
    import torch

    version = str(torch.__version__)
    if count:
        return say_number(
            "there is {number} {kind} device, counted from 0",
            "there are {number} {kind} devices, counted from 0",
            count,
            kind=kind,
        )
    if kind == "cuda":
        if (torch.version.cuda or torch.version.hip) is None:
            return say("torch {version} is a build without CUDA", version=version)
        return say("torch {version} finds no usable GPU and driver", version=version)
    if kind in _PLUGINS and _backend(kind) is None:
        return say("it comes with {plugin}, which is not imported", plugin=_PLUGINS[kind])
    return say("torch {version} finds no {kind} device", version=version, kind=kind)


def _list_here() -> str:
    return ", ".join(available())
