"""Modules of PyTorch that are first imported during a simulation find PyTorch as it is.

Many are imported late (dynamo when the first optimizer is made), and they keep what they find: functions in tables,
the answer to "is there a device". What they keep outlives the simulation, so nothing is patched while they are
executed, and no mode is active in that thread: neither the simulation's nor one that gives factories a default device.

Private PyTorch API used here, 2.6 to 2.14: `torch._C._len_torch_function_stack`, `_pop_torch_function_stack`,
`_push_on_torch_function_stack`, and the three of the same names for dispatch.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import torch

from samedevice.simulation.patching import Applied

__all__ = ["imports_of_torch"]


@contextlib.contextmanager
def imports_of_torch(patches: Applied) -> Iterator[None]:
    """Within it modules of PyTorch are executed without `patches`.

    Args:
        patches: suspended while such a module is executed.
    """
    finder = _Finder(patches)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, patches: Applied) -> None:
        self._patches = patches

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("torch."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader, self._patches)
        return spec


class _Loader(importlib.abc.Loader):
    """The loader of a source file, its module executed without patches."""

    def __init__(self, loader: importlib.machinery.SourceFileLoader, patches: Applied) -> None:
        self._loader = loader
        self._patches = patches

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with self._patches.suspended(), _no_modes():
            self._loader.exec_module(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


@contextlib.contextmanager
def _no_modes() -> Iterator[None]:
    """Within it no function mode and no dispatch mode is active in this thread."""
    functions = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]
    dispatches = [torch._C._pop_torch_dispatch_stack(None) for _ in range(torch._C._len_torch_dispatch_stack())]
    try:
        yield
    finally:
        for mode in reversed(dispatches):
            torch._C._push_on_torch_dispatch_stack(mode)
        for mode in reversed(functions):
            torch._C._push_on_torch_function_stack(mode)
