"""The kinds of checkpoint files: told apart by their first bytes, and read as far as their directory goes."""

from __future__ import annotations

import io
import json
import math
import operator
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from samedevice.checkpoints.contents import Found, Storage, Tensor, item_size
from samedevice.checkpoints.unpickling import InertUnpickler, storage_of
from samedevice.errors import SameDeviceError, UnreadableCheckpoint, UnsafeCheckpoint
from samedevice.texts import say

__all__ = ["read"]

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
"""Source: torch/serialization.py, MAGIC_NUMBER."""
_LONGEST_HEADER = 100_000_000
"""Source: the safetensors format refuses a longer header, so that a damaged length is not believed."""

_OTHER_FILES = {
    b"version https://": say("it is a Git LFS pointer in place of the file; mend: git lfs pull"),
    b"<": say("it is a web page, so perhaps what a failed download left"),
    b"\x1f\x8b": say("it is compressed with gzip; unpack it first"),
    b"GGUF": say("it is a GGUF model, which torch.load does not read"),
    b"\x89HDF": say("it is an HDF5 file, which torch.load does not read"),
    b"\x93NUMPY": say("it is a numpy array, for numpy.load"),
}
"""What is often taken for a checkpoint, by its first bytes."""
_TAR_MAGIC_AT = 257
_MOST_INFLATED = 100
"""A pickle that unpacks to more than this many times its size is made to fill the memory; torch.save packs nothing."""


def read(file: str) -> tuple[str, Found]:
    """Read the directory of a checkpoint file.

    Args:
        file: its path.

    Returns:
        The format's name and what was found.

    Raises:
        UnreadableCheckpoint: missing, cut short, damaged or of another kind.
        UnsafeCheckpoint: the pickle in it would run code.
    """
    if Path(file).exists() and not Path(file).is_file():
        raise UnreadableCheckpoint(
            say("cannot read {file}: it is a folder or a device, and this reads single files", file=file)
        )
    try:
        with Path(file).open("rb") as stream:
            return _read(stream, Path(file).stat().st_size)
    except UnsafeCheckpoint as error:
        raise UnsafeCheckpoint(
            say("{file} is not safe to load: {reason}. It was not run.", file=file, reason=error.message)
        ) from None
    except UnreadableCheckpoint as error:
        raise UnreadableCheckpoint(say("cannot read {file}: {reason}", file=file, reason=error.message)) from None
    except OSError as error:
        raise UnreadableCheckpoint(
            say("cannot read {file}: {reason}", file=file, reason=error.strerror or str(error))
        ) from None


def _read(stream: IO[bytes], size: int) -> tuple[str, Found]:
    start = stream.read(16)
    stream.seek(0)
    if not start:
        raise UnreadableCheckpoint(say("it is empty"))
    if start.startswith(b"PK"):
        return _read_zip(stream)
    if start[8:9] == b"{":
        return "safetensors", _read_safetensors(stream, size)
    if start[:1] == b"\x80" or start[:1] in b"(}])cl":
        return _read_pickles(stream)
    known = next((what for beginning, what in _OTHER_FILES.items() if start.startswith(beginning)), None)
    if known is None and stream.seek(_TAR_MAGIC_AT) and stream.read(5) == b"ustar":
        known = say("it is a tar archive; torch.load itself reads those of before PyTorch 0.1.10")
    if known is not None:
        raise UnreadableCheckpoint(known)
    raise UnreadableCheckpoint(
        say("it is no checkpoint that PyTorch writes (it begins with {start})", start=repr(start[:4]))
    )


# ---- zip: torch.save since 1.6, torch.jit.save


def _read_zip(stream: IO[bytes]) -> tuple[str, Found]:
    try:
        archive = zipfile.ZipFile(stream)
        records = {info.filename: info.file_size for info in archive.infolist()}
        # As PyTorch's reader has it, which takes the folder of the first record and looks names up in any case.
        folder = next(iter(records), "").partition("/")[0]
        name = f"{folder}/data.pkl"
        if name not in records:
            raise UnreadableCheckpoint(say("it is a zip archive without a data.pkl, so not written by torch.save"))
        if len({info.filename.lower() for info in archive.infolist()}) < len(archive.infolist()):
            raise UnsafeCheckpoint(say("it has two records of one name, of which torch.load may read either"))
        info = archive.getinfo(name)
        if info.file_size > _MOST_INFLATED * max(info.compress_size, 1):
            raise UnsafeCheckpoint(
                say(
                    "its {packed} bytes of pickle unpack to {unpacked}",
                    packed=info.compress_size,
                    unpacked=info.file_size,
                )
            )
        # Reads the directory's own record and nothing of the tensors' data.
        content = archive.read(name)
    except (zipfile.BadZipFile, EOFError, struct.error, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, SameDeviceError):
            raise
        raise UnreadableCheckpoint(say("the zip archive is cut short or damaged ({error})", error=str(error))) from None
    found = _unpickle(io.BytesIO(content), {}, _Records(folder, records))
    is_script = any(record.startswith(f"{folder}/code/") for record in records)
    return ("torchscript" if is_script else "zip"), found


class _Records:
    """The records of a zip archive that hold data: each must be there and long enough."""

    def __init__(self, folder: str, sizes: dict[str, int]) -> None:
        self.folder = folder
        self.sizes = sizes

    def check(self, key: Any, needed: int) -> None:
        name = f"{self.folder}/data/{key}"
        size = self.sizes.get(name, self.sizes.get(f"{self.folder}/{key}"))
        if size is None:
            raise UnreadableCheckpoint(say("the record {name} is missing", name=name))
        if size < needed:
            raise UnreadableCheckpoint(
                say("the record {name} has {size} bytes where {needed} are needed", name=name, size=size, needed=needed)
            )


# ---- legacy: torch.save before 1.6, and _use_new_zipfile_serialization=False; plain pickle.dump


def _read_pickles(stream: IO[bytes]) -> tuple[str, Found]:
    storages: dict[str, Storage] = {}
    first = _unpickle(stream, storages)
    if first.root != _LEGACY_MAGIC:
        return "pickle", first
    for _ in ("protocol version", "system information"):
        _unpickle(stream, storages)
    found = _unpickle(stream, storages)
    keys = _unpickle(stream, storages).root
    _check_data_length(stream, keys, storages)
    return "legacy", found


def _check_data_length(stream: IO[bytes], keys: Any, storages: dict[str, Storage]) -> None:
    """Each storage stands behind the pickles as a count of 8 bytes and its elements."""
    known = [storages[key] for key in keys if key in storages] if isinstance(keys, Iterable) else []
    start = stream.tell()
    needed = sum(8 + storage.bytes for storage in known)
    here = stream.seek(0, io.SEEK_END) - start
    if here < needed:
        raise UnreadableCheckpoint(
            say("it is cut short: {size} bytes of data where {needed} are needed", size=here, needed=needed)
        )


def _unpickle(stream: IO[bytes], storages: dict[str, Storage], records: _Records | None = None) -> Found:
    """Read one pickle; `storages` collects by key what it refers to, so that a storage used twice is one."""

    def storage(pid: tuple[Any, ...]) -> Storage:
        made = storage_of(pid)
        if records is not None:
            records.check(pid[2], made.bytes)
        return storages.setdefault(str(pid[2]), made)

    reader = InertUnpickler(stream, storage, _load_bytes)
    try:
        return Found(reader.load(), reader.classes)
    except (UnsafeCheckpoint, UnreadableCheckpoint):
        raise
    except EOFError:
        raise UnreadableCheckpoint(say("it is cut short: its pickle ends too early")) from None
    # A damaged pickle can fail in any of the ways in which objects are put together.
    except Exception as error:
        raise UnreadableCheckpoint(
            say("its pickle is damaged ({type}: {error})", type=type(error).__name__, error=str(error)[:80])
        ) from None


def _load_bytes(data: bytes) -> Any:
    """A checkpoint inside a pickle: how `pickle.dump` writes a storage."""
    return _read(io.BytesIO(data), len(data))[1].root


# ---- safetensors


def _read_safetensors(stream: IO[bytes], size: int) -> Found:
    (length,) = struct.unpack("<Q", stream.read(8))
    if length > min(_LONGEST_HEADER, size - 8):
        raise UnreadableCheckpoint(
            say("it is cut short or damaged: its header claims {length} bytes of {size}", length=length, size=size)
        )
    try:
        header = json.loads(stream.read(length))
        tensors = {name: _safetensor(entry) for name, entry in header.items() if name != "__metadata__"}
        end = max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0)
    # Any JSON may stand there, of any depth and with numbers of any size.
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise UnreadableCheckpoint(say("its safetensors header is damaged ({error})", error=str(error)[:80])) from None
    if 8 + length + end > size:
        raise UnreadableCheckpoint(
            say("it is cut short: {size} bytes where {needed} are needed", size=size, needed=8 + length + end)
        )
    return Found(tensors)


_SAFETENSORS_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}


def _safetensor(entry: dict[str, Any]) -> Tensor:
    dtype = _SAFETENSORS_DTYPES.get(entry["dtype"], str(entry["dtype"]).lower())
    begin, end = map(operator.index, entry["data_offsets"])
    shape = tuple(map(operator.index, entry["shape"]))
    if not 0 <= begin <= end or any(length < 0 for length in shape):
        raise ValueError(f"shape {shape} in bytes {begin} to {end}")
    if entry["dtype"] in _SAFETENSORS_DTYPES and math.prod(shape) * item_size(dtype) != end - begin:
        raise ValueError(f"shape {shape} of {dtype} in {end - begin} bytes")
    return Tensor((Storage(dtype, None, end - begin),), dtype, None, shape)
