"""What is asked of live tensors and modules, without importing torch and without running the user's code.

No torch in `sys.modules` means that there is no tensor to look at. Types are told by their bases, never by
`isinstance`, which would ask an object for its `__class__` and so may run code of its own. Classes are read below
their metaclass, objects below a `__dict__` of their own making, tensor subclasses below `__torch_function__`.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard, TypeVar

__all__ = [
    "describe",
    "device_of",
    "devices_of_parameters",
    "dtype_of",
    "element_count",
    "gradient_of",
    "holds_module",
    "instance_dict",
    "is_generator",
    "is_instance",
    "is_kind",
    "is_leaf",
    "is_module",
    "is_optimizer",
    "is_parameter",
    "is_tensor",
    "is_torch_device",
    "module_of_class",
    "modules_of",
    "mro_of",
    "name_of_class",
    "names_of_class",
    "namespace_of",
    "parameters_of_module",
    "requires_grad",
    "same_storage",
    "shape_of",
    "storage_key",
    "tensors_of_module",
]


_Kind = TypeVar("_Kind")
_MRO, _NAMESPACE = type.__dict__["__mro__"], type.__dict__["__dict__"]
_MODULE = type.__dict__["__module__"]
_NAME, _QUALIFIED = type.__dict__["__name__"], type.__dict__["__qualname__"]


def is_instance(obj: object, module: str, name: str) -> bool:
    """Whether `obj` is an instance of class `name` of the loaded module `module`, told by its type's bases alone."""
    wanted = getattr(sys.modules.get(module), name, None)
    # `type`'s own check looks at the bases alone; what a metaclass says, and its `__eq__`, are not asked.
    return wanted is not None and type.__subclasscheck__(wanted, type(obj))


def is_kind(obj: object, kind: type[_Kind]) -> TypeGuard[_Kind]:
    """`isinstance` for built-in types by the type alone: it never asks an object what it says that its class is."""
    return type.__subclasscheck__(kind, type(obj))


def mro_of(kind: type) -> tuple[type, ...]:
    """The bases of a class, itself first, below whatever its metaclass says."""
    found: tuple[type, ...] = _MRO.__get__(kind)
    return found


def namespace_of(kind: type) -> Mapping[str, Any]:
    """What a class's own body defines, below whatever its metaclass says."""
    found: Mapping[str, Any] = _NAMESPACE.__get__(kind)
    return found


def module_of_class(kind: type) -> str:
    """The name of the module that a class says it is from; "" where it says nothing sensible."""
    found = _MODULE.__get__(kind)
    return found if type(found) is str else ""


def name_of_class(kind: type, *, qualified: bool = False) -> str:
    """The name of a class, below whatever its metaclass says."""
    found: str = (_QUALIFIED if qualified else _NAME).__get__(kind)
    return found


def names_of_class(kind: type) -> set[str]:
    """What the bodies of a class and its bases define, by name."""
    return {name for base in mro_of(kind) for name in namespace_of(base) if type(name) is str}


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a torch tensor of any class."""
    return is_instance(obj, "torch", "Tensor")


def is_parameter(obj: object) -> bool:
    """Whether `obj` is a parameter; the mark on tensors of custom classes counts too, as it does in PyTorch."""
    return is_instance(obj, "torch.nn", "Parameter")


def is_module(obj: object) -> bool:
    """Whether `obj` is a `torch.nn.Module`."""
    return is_instance(obj, "torch.nn", "Module")


def is_optimizer(obj: object) -> bool:
    """Whether `obj` is a `torch.optim.Optimizer`."""
    return is_instance(obj, "torch.optim", "Optimizer")


def is_generator(obj: object) -> bool:
    """Whether `obj` is a `torch.Generator`."""
    return is_instance(obj, "torch", "Generator")


def is_torch_device(obj: object) -> bool:
    """Whether `obj` is a `torch.device`, told by names: in a simulation that is a stand-in for the real class."""
    return (module_of_class(type(obj)), name_of_class(type(obj))) == ("torch", "device")


def device_of(obj: Any) -> str:
    """Where a tensor or a generator lives, e.g. "cuda:0"; "" where it cannot be told."""
    if is_generator(obj):
        return str(_read(sys.modules["torch"].Generator, "device", obj) or "")
    return str(_read_tensor(obj, "device") or "")


def shape_of(tensor: Any) -> tuple[int, ...]:
    """The sizes of `tensor`; () where they are unknown."""
    with contextlib.suppress(TypeError, ValueError, RuntimeError):
        return tuple(int(size) for size in _read_tensor(tensor, "shape") or ())
    return ()


def element_count(tensor: Any) -> int:
    """How many elements `tensor` has; 0 for a lazy layer's, which has none yet and raises at nearly every question."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not is_tensor(tensor):
        return 0
    with torch._C.DisableTorchFunctionSubclass():
        return int(torch.Tensor.numel(tensor))


def dtype_of(tensor: Any) -> str:
    """The dtype of `tensor` as code, e.g. "torch.float32"."""
    return str(_read_tensor(tensor, "dtype") or "")


def is_leaf(tensor: Any) -> bool:
    """Whether autograd counts `tensor` as a leaf."""
    return bool(_read_tensor(tensor, "is_leaf"))


def requires_grad(tensor: Any) -> bool:
    """Whether autograd tracks `tensor`."""
    return bool(_read_tensor(tensor, "requires_grad"))


def gradient_of(tensor: Any) -> Any:
    """The `.grad` of a leaf, or None; a non-leaf is not asked, since PyTorch would warn."""
    return _read_tensor(tensor, "grad") if is_leaf(tensor) else None


def storage_key(tensor: Any) -> int | None:
    """A number that two living tensors share exactly when they share a storage; None where there is no storage."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return None
    try:
        with torch._C.DisableTorchFunctionSubclass():
            return int(torch.Tensor.untyped_storage(_dense_part(tensor, torch))._cdata)
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):
        return None  # mkldnn and functorch tensors have no storage of their own


def _dense_part(tensor: Any, torch: Any) -> Any:
    """The values of a sparse tensor: the storage that stands for it."""
    layout = torch.Tensor.layout.__get__(tensor)
    if layout is torch.strided:
        return tensor
    with torch._C._DisableTorchDispatch():
        return torch.Tensor._values(tensor) if layout is torch.sparse_coo else torch.Tensor.values(tensor)


def same_storage(first: Any, second: Any) -> bool:
    """Whether two tensors are one object or views of one storage."""
    if first is second:
        return True
    key = storage_key(first)
    return key is not None and key == storage_key(second)


def describe(tensor: Any) -> tuple[str, tuple[int, ...], str]:
    """Device, shape and dtype of `tensor`."""
    return device_of(tensor), shape_of(tensor), dtype_of(tensor)


def tensors_of_module(module: Any) -> Iterator[tuple[str, str, Any]]:
    """(path, kind, tensor) of every parameter and buffer below `module`, read from its dicts; shared modules once."""
    seen: set[int] = set()
    queue: list[tuple[str, Any]] = [("", module)]
    while queue:
        prefix, current = queue.pop(0)
        if id(current) in seen or not is_module(current):
            continue
        seen.add(id(current))
        own = instance_dict(current)
        for slot, kind in (("_parameters", "parameter"), ("_buffers", "buffer")):
            for name, tensor in _items(own.get(slot)):
                if is_tensor(tensor):
                    yield f"{prefix}{name}", kind, tensor
        queue.extend((f"{prefix}{name}.", child) for name, child in _items(own.get("_modules")))


def parameters_of_module(module: Any) -> list[Any]:
    """Every parameter below `module`."""
    return [tensor for _, kind, tensor in tensors_of_module(module) if kind == "parameter"]


def devices_of_parameters(module: Any) -> set[str]:
    """Where the parameters below `module` live."""
    return {device_of(parameter) for parameter in parameters_of_module(module)}


def holds_module(outer: object, inner: object) -> bool:
    """Whether `inner` is `outer` or one of the modules registered below it."""
    return outer is inner or any(module is inner for module in modules_of(outer))


def modules_of(module: object) -> Iterator[Any]:
    """`module` and the modules registered below it, each once."""
    seen: set[int] = set()
    queue = [module]
    while queue:
        current = queue.pop(0)
        if id(current) not in seen and is_module(current):
            seen.add(id(current))
            yield current
            queue.extend(child for _, child in _items(instance_dict(current).get("_modules")))


def instance_dict(obj: object) -> dict[str, Any]:
    """The attributes kept on `obj` itself, without running its code; empty where there are none."""
    for base in _MRO.__get__(type(obj)):
        slot = _NAMESPACE.__get__(base).get("__dict__")
        # Else a class's own idea of what its attributes are.
        if type(slot) is types.GetSetDescriptorType or type(slot) is types.MemberDescriptorType:
            try:
                found = slot.__get__(obj)
            except (AttributeError, TypeError):
                return {}
            return found if type(found) is dict else {}
    return {}


def _items(mapping: object) -> list[tuple[Any, Any]]:
    return list(dict.items(mapping)) if is_kind(mapping, dict) else []


def _read_tensor(tensor: Any, name: str) -> Any:
    torch: Any = sys.modules.get("torch")
    if torch is None or not is_tensor(tensor):
        return None
    # Below `__torch_function__`, which belongs to whoever wrote the subclass.
    with torch._C.DisableTorchFunctionSubclass():
        return _read(torch.Tensor, name, tensor)


def _read(owner: Any, name: str, obj: Any) -> Any:
    try:
        return getattr(owner, name).__get__(obj)
    except (RuntimeError, AttributeError, TypeError, NotImplementedError):
        return None
