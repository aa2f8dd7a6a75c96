"""Lets a simulation reach every thread: dispatch modes belong to one, and a new thread begins without any.

Threads started while the simulation runs enter the mode before their own code. One that ran before enters it when it
first asks for a simulated device (`DeviceMode.enter_for_good`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from samedevice.simulation.operators import DeviceMode
from samedevice.simulation.patching import Patch

__all__ = ["patches"]


def patches(mode: DeviceMode) -> Iterator[Patch]:
    """The replacement in `threading`.

    Args:
        mode: what each new thread enters.

    Yields:
        One patch. Source: Lib/threading.py, `Thread._bootstrap_inner`, 3.10 to 3.14.
    """
    original: Any = vars(threading.Thread)["_bootstrap_inner"]

    def _bootstrap_inner(self: threading.Thread) -> None:
        with mode.entered():
            original(self)

    yield Patch(threading.Thread, "_bootstrap_inner", _bootstrap_inner)
