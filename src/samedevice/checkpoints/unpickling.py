"""A pickle's shape without its effects: nothing that the pickle names is imported, and nothing of it is called.

Every global becomes a class made here. Making an object of it (what pickles of ordinary classes do) gives an `Inert`;
calling it (what `__reduce__` does) goes through `_CALLS`, the table of what PyTorch's own pickles call, and is refused
for anything else. Globals that could only be there to do harm are refused as soon as they are named.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import IO, Any

from samedevice.checkpoints.contents import Inert, Storage, Tensor, item_size
from samedevice.errors import UnreadableCheckpoint, UnsafeCheckpoint
from samedevice.texts import say

__all__ = ["InertUnpickler"]

_HARMFUL = frozenset(
    (
        *(
            "os",
            "posix",
            "nt",
            "subprocess",
            "sys",
            "shutil",
            "socket",
            "pty",
            "signal",
            "platform",
            "tempfile",
            "glob",
        ),
        *("runpy", "importlib", "imp", "code", "codeop", "inspect", "types", "ctypes", "cffi", "builtins", "pip"),
        *("pickle", "_pickle", "cloudpickle", "dill", "marshal", "operator", "_operator", "functools", "io", "_io"),
        *("webbrowser", "urllib", "http", "requests", "asyncio", "multiprocessing", "threading", "fileinput"),
        *("bdb", "pdb", "trace", "profile", "cProfile", "timeit"),
    )
)
_BUILTINS = frozenset(
    (
        *("set", "frozenset", "list", "tuple", "dict", "int", "float", "complex", "bool", "str", "bytes", "bytearray"),
        *("slice", "range", "object", "Ellipsis", "NotImplemented", "getattr"),
    )
)
_OLD_NAMES = {
    **{
        ("__builtin__", old): ("builtins", new)
        for old, new in (("xrange", "range"), ("long", "int"), ("unicode", "str"))
    },
    ("copy_reg", "_reconstructor"): ("copyreg", "_reconstructor"),
}
"""What Python 2 called them, and protocol 2, which torch.save writes, still does."""
_OLD_MODULES = {"__builtin__": "builtins", "exceptions": "builtins"}
_HARMLESS_CLASSES = frozenset(("io.BytesIO", "types.SimpleNamespace", "functools.partial"))
"""Named by honest pickles of data; as stand-ins they are as inert as all others."""

_PLAIN_MODULES = frozenset(("torch", "torch.storage", "torch._utils", "collections", "builtins", "__builtin__"))
"""Storages, dtypes and containers: `torch.load(weights_only=True)` takes them."""


class _Named(type):
    """A global of the pickle. To call it is to ask for what `__reduce__` would run."""

    full_name: str
    load_bytes: Callable[[bytes], Any]

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        name = cls.full_name
        if name == "torch.storage._load_from_bytes":
            return cls.load_bytes(*arguments)
        rebuild = _CALLS.get(name)
        if rebuild is not None:
            return rebuild(*arguments, **named)
        if name in _HARMLESS_CALLS or _is_users_class(name):
            return Inert.__new__(cls, *arguments, **named)  # type: ignore[arg-type]
        raise UnsafeCheckpoint(say("it would call {name} when it is loaded", name=name))


class InertUnpickler(pickle.Unpickler):
    """Reads one pickle.

    Args:
        file: positioned at the pickle's start.
        storage: makes the storage that a persistent id stands for.
        load_bytes: reads a checkpoint within the checkpoint, as `pickle.dump` of a tensor writes it.
    """

    def __init__(
        self, file: IO[bytes], storage: Callable[[tuple[Any, ...]], Storage], load_bytes: Callable[[bytes], Any]
    ) -> None:
        super().__init__(file, encoding="utf-8", errors="replace")
        self.classes: set[str] = set()
        self._storage = storage
        self._load_bytes = load_bytes

    def find_class(self, module: str, name: str) -> Any:
        """A stand-in for the global; harmful ones are refused here."""
        module, name = _OLD_NAMES.get((module, name), (module, name))
        module = _OLD_MODULES.get(module, module)
        found = _named(module, name, self._load_bytes)
        if found.full_name not in _CALLS and module not in _PLAIN_MODULES:
            self.classes.add(found.full_name)
        return found

    def persistent_load(self, pid: Any) -> Any:
        """A storage. Source: torch/serialization.py, `persistent_id`, 2.6 to 2.13."""
        kind = pid[0] if isinstance(pid, tuple) and pid else None
        if kind in ("storage", b"storage"):
            return self._storage(pid)
        if kind == "module":  # a class, its source file and its source text, in files from before 1.6
            return pid[1]
        raise UnreadableCheckpoint(say("it refers to something of an unknown kind: {value}", value=str(pid)[:80]))


def _named(module: str, name: str, load_bytes: Callable[[bytes], Any]) -> _Named:
    """The stand-in for a global.

    Raises:
        UnsafeCheckpoint: it could only be there to do harm.
    """
    full_name = f"{module}.{name}"
    if _is_harmful(module, name, full_name):
        raise UnsafeCheckpoint(say("it names {name}", name=full_name))
    return _Named(name, (Inert,), {"full_name": full_name, "load_bytes": staticmethod(load_bytes)})


def _is_harmful(module: str, name: str, full_name: str) -> bool:
    if full_name in _HARMLESS_CLASSES:
        return False
    top = module.split(".")[0]
    if top == "builtins":
        return name not in _BUILTINS and not name.endswith(("Error", "Exception"))
    # A dotted name reaches through the module: "torch" + "os.system" is os.system.
    *through, last = name.split(".")
    return top in _HARMFUL or last in _HARMFUL or any(part in _HARMFUL or part.startswith("__") for part in through)


def _is_users_class(full_name: str) -> bool:
    """Whether it is a class of the user's or of a library: enums and exceptions are pickled as a call of their class.

    Nothing tells a class from a function but the custom of writing it with a capital letter. Classes of the standard
    library are known one by one: some of them open files or start programs when they are made.
    """
    module, _, name = full_name.rpartition(".")
    if module == "builtins":
        return name.endswith(("Error", "Exception"))
    top = module.split(".")[0]
    return name.lstrip("_")[:1].isupper() and (top == "__main__" or top not in sys.stdlib_module_names | {"torch"})


# ---- what PyTorch's pickles call. Source: torch/_utils.py, torch/_tensor.py, 2.6 to 2.13.


class _Dict(dict[Any, Any]):
    """An OrderedDict whose attributes (`state_dict()._metadata`) are of no interest."""

    def __setstate__(self, state: Any) -> None:
        pass


def _dtype_name(dtype: Any) -> str:
    return getattr(dtype, "full_name", str(dtype)).removeprefix("torch.")


def _tensor(storage: Any, offset: int, size: Any, stride: Any, *rest: Any) -> Tensor:
    if not isinstance(storage, Storage):
        raise UnreadableCheckpoint(say("a tensor in it has no storage"))
    return Tensor((storage,), storage.dtype, storage.device, _shape(size))


def _typed_tensor(
    storage: Any, offset: int, size: Any, stride: Any, grad: bool, hooks: Any, dtype: Any, *_: Any
) -> Tensor:
    return Tensor((storage,), _dtype_name(dtype), storage.device, _shape(size))


def _parameter(data: Any, *rest: Any) -> Any:
    if not isinstance(data, Tensor):
        return data
    return Tensor(data.storages, data.dtype, data.device, data.shape, "parameter")


def _sparse_tensor(layout: Any, data: Any) -> Tensor:
    """Indices, values and size: (indices, values, size) or (compressed, plain, values, size)."""
    parts = [part for part in data if isinstance(part, Tensor)]
    size = next((part for part in reversed(data) if isinstance(part, tuple | list)), None)
    if not parts:
        raise UnreadableCheckpoint(say("a sparse tensor in it has no values"))
    storages = tuple(storage for part in parts for storage in part.storages)
    return Tensor(storages, parts[-1].dtype, parts[-1].device, None if size is None else _shape(size))


def _nested_tensor(buffer: Tensor, *rest: Any) -> Tensor:
    return Tensor(buffer.storages, buffer.dtype, buffer.device, None)


def _meta_tensor(dtype: Any, size: Any, *rest: Any) -> Tensor:
    return Tensor((), _dtype_name(dtype), "meta", _shape(size))


def _wrapper(cls: Any, dtype: Any, size: Any, stride: Any, offset: Any, layout: Any, device: Any, *rest: Any) -> Tensor:
    return Tensor((), _dtype_name(dtype), str(device), _shape(size))


def _from_numpy(data: Any, dtype: Any, device: Any, *rest: Any) -> Tensor:
    return Tensor((), _dtype_name(dtype), str(device), None)


def _from_type(function: Any, kind: Any, arguments: Any, state: Any = None) -> Any:
    return function(*arguments)


def _shape(size: Any) -> tuple[int, ...]:
    if not isinstance(size, tuple | list) or not all(isinstance(length, int) for length in size):
        raise UnreadableCheckpoint(say("a tensor in it has no sensible size: {value}", value=str(size)[:80]))
    return tuple(size)


def _mapping(*arguments: Any) -> _Dict:
    pairs = arguments[0] if arguments and isinstance(arguments[0], list | tuple | dict) else ()
    return _Dict(pairs)


def _device(kind: Any = "?", index: Any = None) -> str:
    return str(kind) if index is None else f"{kind}:{index}"


def _attribute(owner: Any, name: Any, *default: Any) -> Any:
    """What `getattr` reaches is one more global: `torch.relu` is `getattr(torch._VariableFunctions, "relu")`."""
    kind = owner if isinstance(owner, _Named) else type(owner)
    if not isinstance(kind, _Named) or not isinstance(name, str):
        raise UnsafeCheckpoint(say("it would call {name} when it is loaded", name="builtins.getattr"))
    module, _, rest = kind.full_name.rpartition(".")
    return _named(module, f"{rest}.{name}", kind.load_bytes)


def _first(value: Any = (), *rest: Any) -> Any:
    return value


_CALLS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _typed_tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.nn.parameter.UninitializedParameter": lambda *_: Tensor((), "float32", None, None, "parameter"),
    "torch.nn.parameter.UninitializedBuffer": lambda *_: Tensor((), "float32", None, None),
    "torch._utils._rebuild_qtensor": _tensor,
    "torch._utils._rebuild_sparse_tensor": _sparse_tensor,
    "torch._utils._rebuild_sparse_csr_tensor": _sparse_tensor,
    "torch._utils._rebuild_nested_tensor": _nested_tensor,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta_tensor,
    "torch._utils._rebuild_wrapper_subclass": _wrapper,
    "torch._utils._rebuild_device_tensor_from_numpy": _from_numpy,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _parameter,
    "torch._utils._rebuild_xla_tensor": _from_numpy,
    "torch._tensor._rebuild_from_type": _from_type,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    "torch.Size": _first,
    "torch.device": _device,
    "torch.serialization._get_layout": _first,
    "torch.jit._pickle.build_intlist": _first,
    "torch.jit._pickle.build_doublelist": _first,
    "torch.jit._pickle.build_boollist": _first,
    "torch.jit._pickle.build_tensorlist": _first,
    "torch.jit._pickle.restore_type_tag": _first,
    "collections.OrderedDict": _mapping,
    "collections.Counter": _mapping,
    "collections.defaultdict": lambda factory=None, *rest: _Dict(),
    "collections.deque": lambda items=(), *_: list(items),
    "builtins.set": _first,
    "builtins.frozenset": _first,
    "builtins.list": _first,
    "builtins.tuple": _first,
    "builtins.dict": _mapping,
    "builtins.bytearray": _first,
    "builtins.complex": lambda *parts: parts,
    "builtins.slice": lambda *parts: parts,
    "builtins.range": lambda *parts: parts,
    "builtins.getattr": _attribute,
    "copyreg._reconstructor": lambda cls, *rest: cls.__new__(cls),
    "_codecs.encode": _first,
}
_HARMLESS_CALLS = frozenset(
    (
        *(
            f"{numpy}.multiarray.{name}"
            for numpy in ("numpy.core", "numpy._core")
            for name in ("_reconstruct", "scalar")
        ),
        *("numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer", "numpy.dtype", "numpy.ndarray"),
        *(f"numpy.random._pickle.__{name}_ctor" for name in ("randomstate", "generator", "bit_generator")),
        *("numpy.random.bit_generator.__pyx_unpickle_SeedSequence", "numpy.ma.core._mareconstruct"),
        *(f"datetime.{name}" for name in ("date", "datetime", "time", "timedelta", "timezone")),
        *(
            f"{module}.{name}"
            for module in ("pathlib", "pathlib._local")
            for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath")
        ),
        *("decimal.Decimal", "fractions.Fraction", "uuid.UUID", "re._compile", "types.SimpleNamespace"),
        *("functools.partial", "torch.Generator", "torch.storage.TypedStorage", "torch.storage.UntypedStorage"),
        *("torch.nested._internal.nested_tensor._rebuild_njt", "tensordict._reductions._make_td"),
    )
)
"""What pickles of plain data call; here each gives an inert object."""


def storage_of(pid: tuple[Any, ...]) -> Storage:
    """The storage that a persistent id describes: ("storage", type, key, location, number of elements, …)."""
    try:
        _, kind, _, location, count, *_ = pid
        dtype = _STORAGE_DTYPES.get(kind.__name__.removesuffix("Storage"), "uint8")
        return Storage(dtype, str(location), int(count) * item_size(dtype))
    except (ValueError, TypeError, AttributeError):
        raise UnreadableCheckpoint(
            say("it describes a storage in an unknown way: {value}", value=str(pid)[:80])
        ) from None


_STORAGE_DTYPES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexDouble": "complex128",
    "ComplexFloat": "complex64",
    "QInt8": "qint8",
    "QUInt8": "quint8",
    "QInt32": "qint32",
    "QUInt4x2": "quint4x2",
    "QUInt2x4": "quint2x4",
    "Untyped": "uint8",
}
"""Class of storage to dtype. Source: torch/storage.py, `_dtype_to_storage_type_map`, 2.6 to 2.13."""
