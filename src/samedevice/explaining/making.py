"""What the line that made a tensor says: a factory without a device, a fixed device, a cache, a checkpoint."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from samedevice.explaining.sources import Source
from samedevice.explaining.syntax import call_name, keyword, move_calls, moved_device, undressed
from samedevice.explaining.vocabulary import FACTORIES, FROM_DATA

__all__ = [
    "factory_call",
    "fixed_device",
    "from_data",
    "is_guarded",
    "is_load",
    "load_call",
    "makes_elsewhere",
    "makes_module",
    "map_location_of",
    "sets_in_cache",
    "written_shape",
]

_DEFAULT = re.compile(r"set_default_(device|tensor_type)|\bwith\b.*device")
_FIXED = re.compile(r"(cuda|xpu|mps|cpu)(:\d+)?$")


def factory_call(statement: ast.AST | None, source: Source) -> ast.Call | None:
    """The call of a factory (`torch.zeros(…)`) in `statement` that names no device."""
    return next((call for call in _torch_calls(statement, FACTORIES, source) if keyword(call, "device") is None), None)


def from_data(statement: ast.AST | None, source: Source) -> ast.Call | None:
    """The call in `statement` that makes a tensor of other data (`torch.tensor(rows)`) and names no device."""
    return next((call for call in _torch_calls(statement, FROM_DATA, source) if keyword(call, "device") is None), None)


def makes_elsewhere(node: ast.expr, device: str, source: Source) -> bool:
    """Whether `node` is a factory's call without a device, and so on the CPU, not on `device`.

    A file that sets a default device says otherwise somewhere.
    """
    bare = factory_call(node, source) is node and not any(word.arg is None for word in getattr(node, "keywords", ()))
    return bare and device != "cpu" and not any(_DEFAULT.search(line) for line in source.lines)


def written_shape(node: ast.expr) -> tuple[int, ...] | None:
    """The sizes that a factory's call is given as numbers: `torch.ones(1, 2)`; None for anything else."""
    if not isinstance(node, ast.Call) or call_name(node) not in ("zeros", "ones", "empty", "rand", "randn"):
        return None
    only = node.args[0] if len(node.args) == 1 else None
    sizes = only.elts if isinstance(only, ast.Tuple | ast.List) else node.args
    found = tuple(size.value for size in sizes if isinstance(size, ast.Constant) and type(size.value) is int)
    return found if sizes and len(found) == len(sizes) else None


def is_literal(call: ast.Call) -> bool:
    """Whether the data are written in the source: `torch.tensor([0.5, 1.0])`."""
    return bool(call.args) and all(
        isinstance(
            node, ast.Constant | ast.List | ast.Tuple | ast.UnaryOp | ast.USub | ast.Load | ast.BinOp | ast.operator
        )
        for node in ast.walk(call.args[0])
    )


def fixed_device(node: ast.AST | None, *, outermost: bool = False) -> ast.expr | None:
    """The device that `node` fixes by name: "cuda:0", `torch.device("cuda")`, or the call `.cuda()` itself.

    Args:
        node: a statement or an expression.
        outermost: True counts only what decides where the whole value is, not a part that went into a computation.
    """
    for call in _deciding_calls(node) if outermost else _calls(node):
        device = moved_device(call) if call in list(move_calls(call)) else keyword(call, "device")
        if device is None and isinstance(call.func, ast.Attribute) and call.func.attr in ("cuda", "xpu"):
            return call
        if device is not None and _is_fixed(device):
            return device
    return None


def _calls(node: ast.AST | None) -> Iterator[ast.Call]:
    for inner in ast.walk(node) if node is not None else ():
        if isinstance(inner, ast.Call):
            yield inner


def _deciding_calls(node: ast.AST | None) -> Iterator[ast.Call]:
    value = getattr(node, "value", node) if isinstance(node, ast.stmt) else node
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        value = value.elt
    while isinstance(value, ast.expr):
        inner = undressed(value)
        if isinstance(inner, ast.Call):
            yield inner
        if inner is value:
            return
        value = inner


def load_call(statement: ast.AST | None) -> ast.Call | None:
    """The call in `statement` that reads a checkpoint."""
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Call) and call_name(node) in ("load", "load_file", "load_from_checkpoint"):
            return node
    return None


def is_load(statement: ast.AST | None) -> bool:
    """Whether `statement` reads a checkpoint without saying where to."""
    call = load_call(statement)
    return call is not None and map_location_of(call) is None


def map_location_of(call: ast.Call) -> ast.expr | None:
    """Where a call that reads a checkpoint says that tensors are to go; None also for `map_location=None`."""
    second = call.args[1] if len(call.args) > 1 and call_name(call) != "load_file" else None
    said = second or keyword(call, "map_location")
    return None if isinstance(said, ast.Constant) and said.value is None else said


def makes_module(statement: ast.AST | None) -> ast.Call | None:
    """The construction of a layer in `statement`: `nn.Linear(…)`, or a call of a name that begins like a class."""
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Call) and call_name(node)[:1].isupper() and call_name(node) not in FROM_DATA:
            return node
    return None


def sets_in_cache(source: Source, name: str) -> int | None:
    """The line that fills the attribute or variable `name` only when it is not there yet: a cache.

    Args:
        source: the file.
        name: the last part of what is assigned: "templates" of `self.templates`, "_masks" of `_masks[length]`.
    """
    for node in ast.walk(source.tree):
        sets = isinstance(node, ast.Assign) and name in {_last_name(part) for part in _targets(node)}
        if isinstance(node, ast.Assign) and sets and is_guarded(source, node, name):
            return node.lineno
    return None


def is_guarded(source: Source, statement: ast.stmt, name: str) -> bool:
    """Whether an `if` around `statement`, or a caching decorator of its function, asks about `name`."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.If) or not _inside(statement, node):
            continue
        if _asks_about(node.test, name) or any(_asks_about(node.test, other) for other in _attributes_set(node)):
            return True
    return False


def _attributes_set(node: ast.If) -> set[str]:
    """The attributes that the body sets: `self.length = n` tells with which length the rest was filled."""
    return {
        part.attr
        for statement in node.body
        for inner in ast.walk(statement)
        if isinstance(inner, ast.Assign)
        for target in inner.targets
        for part in ast.walk(target)
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
    }


def calls_cached_function(node: ast.AST | None, source: Source) -> ast.expr | None:
    """The call in `node` of a function of this file that keeps its results."""
    for call in _calls(node):
        for function in source.functions_named(call_name(call)):
            if is_cached_function(source, function.lineno):
                return call
    return None


def is_cached_function(source: Source, line: int) -> bool:
    """Whether the function around `line` keeps its results: `functools.cache`, `lru_cache`, `cached_property`."""
    function = source.function_at(line)
    decorators = getattr(function, "decorator_list", [])
    return any("cache" in ast.unparse(decorator) for decorator in decorators)


def _torch_calls(statement: ast.AST | None, names: frozenset[str], source: Source) -> Iterator[ast.Call]:
    """Calls by these names of torch itself (`torch.zeros`, or `zeros` imported from it), outermost first."""
    for node in ast.walk(statement) if statement is not None else ():
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in names:
            if ast.unparse(node.func.value).split(".")[0] in ("torch", "th", "t", "transforms", "TF"):
                yield node
        elif (
            isinstance(node.func, ast.Name)
            and node.func.id in names
            and f"import {node.func.id}" in "".join(source.lines)
        ):
            yield node


def _is_fixed(device: ast.expr) -> bool:
    if isinstance(device, ast.Call) and call_name(device) == "device" and device.args:
        rest = device.args[1:]
        return _is_fixed(device.args[0]) and all(isinstance(part, ast.Constant) for part in rest)
    if isinstance(device, ast.IfExp):  # "cuda" if torch.cuda.is_available() else "cpu"
        return _is_fixed(device.body) and _is_fixed(device.orelse)
    if isinstance(device, ast.Constant):
        return type(device.value) is int or (type(device.value) is str and bool(_FIXED.match(device.value)))
    return False


def _inside(statement: ast.stmt, node: ast.If) -> bool:
    return any(inner is statement for part in node.body for inner in ast.walk(part))


def _asks_about(test: ast.expr, name: str) -> bool:
    for node in ast.walk(test):
        if (isinstance(node, ast.Attribute) and node.attr == name) or (isinstance(node, ast.Name) and node.id == name):
            return True
        if isinstance(node, ast.Constant) and node.value == name:  # hasattr(self, "mask")
            return True
    return False


def _targets(statement: ast.Assign) -> Iterator[ast.expr]:
    for target in statement.targets:
        yield from target.elts if isinstance(target, ast.Tuple | ast.List) else (target,)


def _last_name(target: ast.expr) -> str:
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""
