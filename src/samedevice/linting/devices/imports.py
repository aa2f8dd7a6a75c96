"""Names from other files of the same package, folder or project.

A file is looked into when a name of it is first used. Its top level is interpreted then, once, apart from what is going
on; functions and classes of it are followed like the file's own. How many files and how deep is bounded; cycles end
because a file that is being interpreted is known already, with the names that it has so far.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from samedevice.linting.devices.frames import Frame
from samedevice.linting.devices.machine import Machine
from samedevice.linting.devices.memory import Memory
from samedevice.linting.devices.places import CPU
from samedevice.linting.devices.values import Constant, External, Imported, Namespace, Scope, Value

__all__ = ["attribute", "bind_module", "bind_names", "resolve"]

_MOST_FILES = 24
_DEEPEST = 5


def bind_module(machine: Machine, node: ast.Import, alias: ast.alias) -> None:
    """`import a.b` and `import a.b as c`."""
    name = alias.name if alias.asname else alias.name.partition(".")[0]
    external = External(name)
    file = _find(machine, name, 0, node)
    machine.bind(alias.asname or name, Imported(file, "", node, external) if file is not None else external)


def bind_names(machine: Machine, node: ast.ImportFrom) -> None:
    """`from a import b`, `from .a import b` and `from . import b`."""
    file = _find(machine, node.module or "", node.level, node)
    for alias in node.names:
        if alias.name == "*":
            _bind_all(machine, file)
            continue
        machine.bind(alias.asname or alias.name, _named(machine, node, alias.name, file))


def _named(machine: Machine, node: ast.ImportFrom, name: str, file: Path | None) -> Value:
    """`name` of the module in `file`, or the module `name` in a folder that is no package of its own."""
    module = node.module or ""
    external = External(f".{module}.{name}" if node.level else f"{module}.{name}")
    if file is not None:
        return Imported(file, name, node, external)
    inner = _find(machine, f"{module}.{name}" if module else name, node.level, node)
    return Imported(inner, "", node, external) if inner is not None else external


def _find(machine: Machine, module: str, level: int, node: ast.AST) -> Path | None:
    importer = machine.files.get(id(machine.frame.scopes[-1]))
    if machine.neighbours is None or importer is None:
        return None
    file = machine.neighbours.find(importer, module, level)
    if file is not None and machine.neighbours.sets_default_device(file):
        _load(machine, file, node)
    return file


def _bind_all(machine: Machine, file: Path | None) -> None:
    """`from a import *`."""
    module = _load(machine, file, machine.subject) if file is not None else None
    for name, value in list(module.scope.items()) if module is not None else ():
        if not name.startswith("_"):
            machine.bind(name, value)


def resolve(machine: Machine, imported: Imported) -> Value:
    """What an imported name stands for."""
    if imported.found is None:
        # Not known as long as it is being looked up: two files may import one name from each other.
        imported.found = imported.fallback
        imported.found = _found(machine, imported)
    return imported.found


def _found(machine: Machine, imported: Imported) -> Value:
    module = _load(machine, imported.file, imported.node)
    if module is None:
        return imported.fallback
    if not imported.name:
        return module
    found = attribute(machine, module, imported.name)
    return imported.fallback if isinstance(found, External) and found.name.startswith("?") else found


def attribute(machine: Machine, module: Namespace, name: str) -> Value:
    """`module.name`: a name of it, or a module inside a package."""
    value = module.scope.get(name)
    if isinstance(value, Imported):
        return resolve(machine, value)
    if value is not None:
        return value
    file = machine.neighbours.submodule(module.file, name) if machine.neighbours is not None else None
    inner = _load(machine, file, machine.subject) if file is not None else None
    return inner if inner is not None else External(f"?{module.name}.{name}")


def _load(machine: Machine, file: Path, node: ast.AST) -> Namespace | None:
    """The names of a file, after its top level."""
    known = machine.namespaces.get(file)
    if known is not None:
        return known
    if machine.neighbours is None or len(machine.namespaces) >= _MOST_FILES or len(machine.loading) >= _DEEPEST:
        return None
    tree = machine.neighbours.tree(file)
    if tree is None:
        return None
    name = file.parent.name if file.name == "__init__.py" else file.stem
    module = machine.namespaces[file] = Namespace(name, file, {"__name__": Constant(name)})
    machine.files[id(module.scope)] = file
    # Where it is nested too deeply, what comes after is not known.
    with _apart(machine, module.scope, node), suppress(RecursionError):
        machine.execute(tree.body)
    return module


@contextmanager
def _apart(machine: Machine, scope: Scope, node: ast.AST) -> Iterator[None]:
    """Interpret another file's top level: nothing of it is undone with the branch in which its name was needed."""
    before = machine.memory, machine.frames, machine.loops, machine.standalone, machine.subject
    default, machine.default_place = machine.default_place, CPU
    machine.subject = machine.own(node)
    machine.memory, machine.frames, machine.loops, machine.standalone = Memory(), [Frame((scope,))], 0, False
    machine.loading.append(node)
    try:
        yield
    finally:
        machine.loading.pop()
        machine.memory, machine.frames, machine.loops, machine.standalone, machine.subject = before
        if machine.default_place == CPU:
            machine.default_place = default
