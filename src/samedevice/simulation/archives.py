"""TorchScript archives: the device that is written for each storage, read back and written as a real device's would be.

C++ writes an archive, and restores each tensor where the archive says. Here C++ knows the CPU only: what it wrote is
corrected, so that the archive is the one that a real device writes, and before it reads one the devices are read out.
Nothing in an archive is run: its pickles are read with every class replaced by an inert one.

Source: torch/csrc/jit/serialization/pickler.cpp, `pushStorageOfTensor`, 2.6 to 2.14: a persistent id is the tuple
("storage", type, key, device, number of elements).
"""

from __future__ import annotations

import io
import itertools
import pickle
import pickletools
import struct
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

__all__ = ["Stored", "constants_of", "storages_in", "stored", "stored_tensors", "with_devices"]

_PICKLES = {"data.pkl": "data", "constants.pkl": "constants"}
"""The pickles of an archive that hold tensors -> what they are called here."""


_PUTS = ("BINPUT", "LONG_BINPUT")
_GETS = ("BINGET", "LONG_BINGET")

_Operations = list[tuple[Any, Any, Any]]
"""As `pickletools.genops` tells them: the opcode, its argument, its position."""


class Stored(NamedTuple):
    """A storage in an archive."""

    key: str
    device: str


class _Inert:
    """Stands for every class and function that an archive names; keeps what it is given."""

    def __init__(self, *args: Any) -> None:
        self._args = args

    def __setitem__(self, key: Any, value: Any) -> None:
        """An ordered dictionary's items say nothing."""


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _Inert

    def persistent_load(self, pid: Any) -> Any:
        return Stored(pid[2], pid[3])


def stored(file: Any) -> dict[str, Any]:
    """What an archive holds.

    Args:
        file: a path, or a binary file that can be sought; left where it was.

    Returns:
        "data" and "constants" -> the objects, as `stored_tensors` takes them; empty for what is no archive.
    """
    start = None if isinstance(file, str | bytes) or not hasattr(file, "tell") else file.tell()
    try:
        with zipfile.ZipFile(file) as archive:
            pickles = {_called(name): name for name in archive.namelist() if _called(name)}
            return {called: _Reader(io.BytesIO(archive.read(name))).load() for called, name in pickles.items()}
    except (OSError, zipfile.BadZipFile, pickle.UnpicklingError, EOFError, AttributeError, TypeError, IndexError):
        return {}
    finally:
        if start is not None:
            file.seek(start)


def _called(name: str) -> str:
    """Which pickle a record of an archive is; "" for the others."""
    return _PICKLES.get(name.rpartition("/")[2], "")


def stored_tensors(found: Any, written: Any) -> Iterator[tuple[torch.Tensor, Stored]]:
    """The tensors of a module, each with its storage in the archive.

    Args:
        found: the module, or one of its attributes.
        written: the same as `stored` returned it.

    Yields:
        Tensor and storage; what does not match is left out.
    """
    if isinstance(found, torch.Tensor):
        storage = next(storages_in(written), None)
        if storage is not None:
            yield found, storage
    elif isinstance(found, torch.nn.Module):
        for name, value in getattr(written, "__dict__", {}).items():
            if name != "_args":
                yield from stored_tensors(getattr(found, name, None), value)
    elif isinstance(found, list | tuple):
        written = written._args[0] if isinstance(written, _Inert) and written._args else written
        for item, value in zip(found, written if isinstance(written, list | tuple) else (), strict=False):
            yield from stored_tensors(item, value)
    elif isinstance(found, dict) and isinstance(written, dict):
        for key, item in found.items():
            yield from stored_tensors(item, written.get(key))


def storages_in(written: Any) -> Iterator[Stored]:
    """All storages in what an archive holds; those of a tensor are among the arguments of a call.

    Args:
        written: as `stored` returned it.

    Yields:
        Each storage.
    """
    if isinstance(written, Stored):
        yield written
    elif isinstance(written, _Inert):
        for value in vars(written).values():
            yield from storages_in(value)
    elif isinstance(written, list | tuple | dict):
        for value in written.values() if isinstance(written, dict) else written:
            yield from storages_in(value)


def constants_of(written: Any) -> list[Stored]:
    """The storages of the constants in the code.

    Args:
        written: as `stored` returned it.

    Returns:
        They, in order.
    """
    return list(storages_in(written)) if isinstance(written, tuple) else []


def with_devices(archive: bytes, devices: Mapping[str, Mapping[str, str]]) -> bytes:
    """The archive with other devices in it.

    Args:
        archive: as C++ wrote it.
        devices: "data" and "constants" -> key of a storage -> its device.

    Returns:
        The archive, of the same records in the same order.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as before, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as after:
        for name in before.namelist():
            content = before.read(name)
            wanted = devices.get(_called(name))
            after.writestr(name, _relocated(content, wanted) if wanted else content)
    return out.getvalue()


def _relocated(text: bytes, devices: Mapping[str, str]) -> bytes:
    """A pickle in which the storages named in `devices` are there.

    Device names are written out wherever they stand: C++ shares equal strings, and reads no opcode that drops one.
    """
    operations: _Operations = [*pickletools.genops(text)]
    positions = [position for _, _, position in operations] + [len(text)]
    memo = _memoised_strings(operations)
    devices_at = {
        number - 3 - (operations[number - 3][0].name in _PUTS): number
        for number, (operation, _, _) in enumerate(operations)
        if operation.name == "BINPERSID"
    }
    shared = {operations[place + 1][1] for place in devices_at if operations[place + 1][0].name in _PUTS}
    parts = []
    for number, (operation, argument, position) in enumerate(operations):
        if number in devices_at:
            key = _string_before(operations, number, memo)
            parts.append(_string(devices.get(key) or _string_at(operations, number, memo)))
        elif operation.name in _GETS and argument in shared:
            parts.append(_string(memo[argument]))
        else:
            parts.append(text[position : positions[number + 1]])
    return b"".join(parts)


def _memoised_strings(operations: _Operations) -> dict[int, str]:
    pairs = itertools.pairwise(operations)
    return {put: text for (push, text, _), (op, put, _) in pairs if op.name in _PUTS and push.name == "BINUNICODE"}


def _string_at(operations: _Operations, number: int, memo: Mapping[int, str]) -> str:
    operation, argument, _ = operations[number]
    text: str = memo[argument] if operation.name in _GETS else argument
    return text


def _string_before(operations: _Operations, number: int, memo: Mapping[int, str]) -> str:
    before = number - 1
    return _string_at(operations, before - (operations[before][0].name in _PUTS), memo)


def _string(text: str) -> bytes:
    data = text.encode()
    return pickle.BINUNICODE + struct.pack("<I", len(data)) + data
