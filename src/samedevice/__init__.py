"""Every PyTorch tensor on the right device: moved, checked, explained, simulated and linted.

Each public name is loaded when it is first used, so that `import samedevice` costs next to nothing and never imports
torch: a pytest plugin or a linter must not pay for what it does not use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it: typing alone would cost half of the start

__version__ = "0.1.0"

_HOME = {
    "Culprit": "findings",
    "DeviceLoader": "placing.device_loader",
    "Edit": "findings",
    "Finding": "findings",
    "Fix": "findings",
    "LeftBehind": "errors",
    "Location": "findings",
    "MoveError": "errors",
    "NotSimulated": "errors",
    "Operand": "findings",
    "Report": "findings",
    "SameDeviceError": "errors",
    "UnavailableDevice": "errors",
    "UnknownDevice": "errors",
    "UnsafeCheckpoint": "errors",
    "UsageError": "errors",
    "align_inputs": "placing.align_inputs",
    "check": "placing.check",
    "explain": "explaining.explain",
    "install": "explaining.install",
    "move_to_device": "placing.move_to_device",
    "register_container": "trees.containers",
    "simulate": "simulation.simulate",
    "sync_optimizer": "placing.sync_optimizer",
    "unify": "placing.unify",
    "watch": "tracing.watch",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from typing import Any

    from samedevice.errors import (
        LeftBehind as LeftBehind,
    )
    from samedevice.errors import (
        MoveError as MoveError,
    )
    from samedevice.errors import (
        NotSimulated as NotSimulated,
    )
    from samedevice.errors import (
        SameDeviceError as SameDeviceError,
    )
    from samedevice.errors import (
        UnavailableDevice as UnavailableDevice,
    )
    from samedevice.errors import (
        UnknownDevice as UnknownDevice,
    )
    from samedevice.errors import (
        UnsafeCheckpoint as UnsafeCheckpoint,
    )
    from samedevice.errors import (
        UsageError as UsageError,
    )
    from samedevice.explaining.explain import explain as explain
    from samedevice.explaining.install import install as install
    from samedevice.findings import (
        Culprit as Culprit,
    )
    from samedevice.findings import (
        Edit as Edit,
    )
    from samedevice.findings import (
        Finding as Finding,
    )
    from samedevice.findings import (
        Fix as Fix,
    )
    from samedevice.findings import (
        Location as Location,
    )
    from samedevice.findings import (
        Operand as Operand,
    )
    from samedevice.findings import (
        Report as Report,
    )
    from samedevice.placing.align_inputs import align_inputs as align_inputs
    from samedevice.placing.check import check as check
    from samedevice.placing.device_loader import DeviceLoader as DeviceLoader
    from samedevice.placing.move_to_device import move_to_device as move_to_device
    from samedevice.placing.sync_optimizer import sync_optimizer as sync_optimizer
    from samedevice.placing.unify import unify as unify
    from samedevice.simulation.simulate import simulate as simulate
    from samedevice.tracing.watch import watch as watch
    from samedevice.trees.containers import register_container as register_container


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'samedevice' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"samedevice.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
