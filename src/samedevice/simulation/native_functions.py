"""What PyTorch's own `native_functions.yaml` says about each operator: the source of the device rules.

Every wheel carries the file inside `torchgen`, so the installed PyTorch decides which operators exist, which of them
compare devices before they start, and how they are named in the message. Only the few fields that bear on devices are
read, by lines, because a YAML parser needs seconds for a file of this size; arguments are not read at all, since an
`OpOverload` carries its schema. A test holds this reader equal to torchgen's own parse.

This module must not know about tensors, devices or messages.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from samedevice.errors import NotSimulated
from samedevice.texts import say

__all__ = ["NativeFunction", "native_function", "native_functions"]

_NAME = re.compile(r"([\w.:]+)\(")
# Source: torchgen/model.py, `UFUNC_DISPATCH_KEYS`, 2.6 to 2.14: a ufunc has these kernels without naming them.
_UFUNC_KEYS = frozenset({"CPU", "CUDA"})


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """One operator, with what its entry says about devices."""

    name: str
    """With the overload, e.g. "add.Tensor"."""
    checked: bool
    """Kernels for devices compare the devices of all arguments first (`device_check` is not NoCheck)."""
    structured: bool
    """Decides the order of name and overload in the wrapper's name."""
    iterator: bool
    """Its operands meet in a TensorIterator, which has a device rule of its own."""
    inherits_iterator: bool
    """Structured, and an iterator from the start, outputs included; others make results first, then iterate."""
    keys: frozenset[str]
    """Dispatch keys that have a kernel, e.g. {"CPU", "CUDA"}; empty: only made of other operators."""

    delegate: str = ""
    """The `out=` form that does the work of a structured operator, and which is named where it has no kernel."""
    made_up: bool = False
    """torchgen makes it from another form of the operator (`autogen`); it has no entry."""

    def has_kernel(self, key: str) -> bool:
        """Whether there is a kernel for the dispatch key, e.g. "CUDA" or "SparseCUDA"."""
        return key in self.keys


def native_function(name: str) -> NativeFunction | None:
    """The entry of an operator such as "add.Tensor", or None where the file has none.

    Operators that torchgen makes up itself (the `autogen` ones) are found under their own name, unchecked.

    Args:
        name: The name with its overload, without "aten::".

    Returns:
        What the file says about it; None for operators of other libraries.

    Raises:
        NotSimulated: The installed PyTorch carries no `native_functions.yaml`.
    """
    entries = _entries()
    text = entries.get(name)
    return None if text is None else _read(name, text)


def native_functions() -> tuple[str, ...]:
    """The names of all operators in the file, the `autogen` ones among them."""
    return tuple(_entries())


@functools.cache
def _entries() -> dict[str, str]:
    entries: dict[str, str] = {}
    made_up: list[str] = []
    for text in _yaml_text().split("\n- func: ")[1:]:
        match = _NAME.match(text)
        if match is None:
            continue
        entries[match[1].removeprefix("aten::")] = text
        made_up += _field(text, "autogen").split(", ") if "\n  autogen:" in text else []
    for name in made_up:
        entries.setdefault(name, "")
    return entries


def _yaml_text() -> str:
    spec = importlib.util.find_spec("torchgen")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        path = Path(folder, "packaged", "ATen", "native", "native_functions.yaml")
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise NotSimulated(
        say(
            "no rules for simulated devices: the installed PyTorch carries no "
            "torchgen/packaged/ATen/native/native_functions.yaml. Install a wheel from PyPI or "
            "pytorch.org, which has it."
        )
    )


@functools.cache
def _read(name: str, text: str) -> NativeFunction:
    if not text:
        return NativeFunction(name, False, False, False, False, frozenset(), made_up=True)
    delegate = _field(text, "structured_delegate")
    # A delegating entry is structured and has the kernels of its out= form, whose own entry names them.
    source = _entries().get(delegate, "") if delegate else text
    inherits = _field(source, "structured_inherits") == "TensorIteratorBase"
    return NativeFunction(
        name,
        checked=_field(text, "device_check") != "NoCheck",
        structured=bool(delegate) or _field(text, "structured") == "True",
        iterator=inherits or _is_marked_iterator(text),
        inherits_iterator=inherits,
        keys=_dispatch_keys(text) | _dispatch_keys(source),
        delegate=delegate,
    )


def _field(text: str, key: str) -> str:
    start = text.find(f"\n  {key}:")
    if start < 0:
        return ""
    value = text[start:].lstrip("\n").split("\n", 1)[0].split(":", 1)[1]
    return value.split("#", 1)[0].strip()


def _is_marked_iterator(text: str) -> bool:
    """Whether a comment beside `device_check` says TensorIterator: how PyTorch's authors mark unstructured ones."""
    return re.search(r"\n  device_check:[^\n#]*#[^\n]*TensorIterator", text) is not None


def _dispatch_keys(text: str) -> frozenset[str]:
    found: set[str] = set()
    inside = False
    for line in text.split("\n")[1:]:
        if line.startswith("  dispatch:"):
            inside = True
        elif inside and line.startswith("    ") and ":" in line and not line.lstrip().startswith("#"):
            found.update(key.strip() for key in line.split(":", 1)[0].split(","))
        elif line.startswith("  ufunc_inner_loop:"):
            found |= _UFUNC_KEYS
            inside = False
        elif line.strip() and not line.lstrip().startswith("#"):
            inside = False
    return frozenset(found)
