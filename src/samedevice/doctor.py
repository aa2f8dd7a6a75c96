"""What this machine can do: its torch build, drivers and devices.

Works without torch, and never fails because a part of what it asks about is broken: what cannot be read is said so.
It initialises no device beyond asking how many there are.
"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import samedevice
from samedevice.texts import Text, say

__all__ = ["Line", "examine"]

OLDEST_TORCH = (2, 6)
_SLOWEST_ANSWER = 10
"""Seconds; a driver in a bad state can hang `nvidia-smi`."""


@dataclass(frozen=True, slots=True)
class Line:
    """One fact, and whether it is in order."""

    topic: str
    text: str
    state: Literal["ok", "note", "wrong"] = "ok"


def examine() -> tuple[Line, ...]:
    """Look at this machine.

    Returns:
        The facts, from Python down to the devices.
    """
    lines = [
        Line("samedevice", samedevice.__version__),
        Line("python", _python()),
        *_driver(),
    ]
    torch, problem = _import_torch()
    if torch is None:
        lines.append(problem)
        lines.append(Line(say("without torch"), say("lint, explain, inspect and causes work")))
        return tuple(lines)
    return (*lines, *_build(torch), *_devices(torch))


def _python() -> Text:
    return say(
        "{version} on {system} {machine} ({executable})",
        version=platform.python_version(),
        system=platform.system(),
        machine=platform.machine(),
        executable=sys.executable,
    )


def _import_torch() -> tuple[Any, Line]:
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None, Line("torch", say("not installed; mend: pip install torch"), "note")
    try:
        import torch
    except Exception as error:  # a broken installation fails in many ways, OSError of a missing library the first
        said = say("{version} is installed and cannot be imported: {error}", version=version, error=str(error))
        return None, Line("torch", said, "wrong")
    return torch, Line("torch", version)


def _driver() -> Iterator[Line]:
    """What the system's own tools say, whatever torch thinks."""
    topic = say("driver")
    if Path("/proc/driver/nvidia/version").is_file() or shutil.which("nvidia-smi"):
        answer = _ask(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
        state: Literal["ok", "wrong"] = "ok" if answer.ok else "wrong"
        for row in answer.rows[:16]:
            yield Line(topic, say("NVIDIA {answer}", answer=row), state)
    elif Path("/dev/kfd").exists():
        yield Line(topic, say("AMD (ROCm): /dev/kfd is there"))
    else:
        yield Line(topic, say("no NVIDIA or AMD driver on this machine"), "note")


_NO_CUDA = say("the CPU (no CUDA)")


@dataclass(frozen=True, slots=True)
class _Answer:
    ok: bool
    rows: list[str]


def _ask(command: list[str]) -> _Answer:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SLOWEST_ANSWER, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return _Answer(False, [say("{command} gave no answer: {error}", command=command[0], error=str(error))])
    text = (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip()
    nothing = say("{command} printed nothing", command=command[0])
    return _Answer(done.returncode == 0, text.splitlines() or [nothing])


def _build(torch: Any) -> Iterator[Line]:
    version = torch.version
    made_for = f"CUDA {version.cuda}" if version.cuda else f"ROCm {version.hip}" if version.hip else _NO_CUDA
    yield Line("torch", say("{version}, built for {target}", version=str(torch.__version__), target=made_for))
    found = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if found < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        said = say(
            "{version} is older than {oldest}, the oldest that samedevice supports",
            version=str(torch.__version__),
            oldest=oldest,
        )
        yield Line("torch", said, "wrong")


def _devices(torch: Any) -> Iterator[Line]:
    kinds: dict[str, Callable[[], Iterator[Line]]] = {
        "cuda": lambda: _counted(torch.cuda, "cuda"),
        "xpu": lambda: _counted(torch.xpu, "xpu"),
        "mps": lambda: _mps(torch),
    }
    found = False
    for kind, look in kinds.items():
        try:
            for line in look():
                found = found or line.state == "ok"
                yield line
        except Exception as error:  # a driver that is broken may raise anything
            yield Line(kind, say("cannot be asked: {error}", error=str(error)), "wrong")
    if not found:
        yield Line(say("devices"), say("cpu only: real accelerators none"), "note")


def _counted(backend: Any, kind: str) -> Iterator[Line]:
    visible = int(backend.device_count())
    if visible and not backend.is_available():
        said = say("{number} visible, and torch cannot use them (driver too old for this build?)", number=visible)
        yield Line(kind, said, "wrong")
        return
    for index in range(visible):
        memory = backend.get_device_properties(index).total_memory / 2**30
        yield Line(f"{kind}:{index}", f"{backend.get_device_name(index)}, {memory:.1f} GiB")


def _mps(torch: Any) -> Iterator[Line]:
    if torch.backends.mps.is_available():
        yield Line("mps:0", "Apple Metal")
    elif torch.backends.mps.is_built():
        yield Line("mps", say("built in, and this macOS or Mac does not offer it"), "note")
