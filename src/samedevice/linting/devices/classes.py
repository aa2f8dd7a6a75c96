"""Definitions of functions and classes."""

from __future__ import annotations

import ast
from typing import Literal

from samedevice.linting.devices.machine import Frame, Machine
from samedevice.linting.devices.values import Class, External, Function, Value

__all__ = ["define_class", "define_function"]

_TRANSPARENT = frozenset(
    [
        "torch.no_grad",
        "torch.inference_mode",
        "torch.enable_grad",
        "torch.jit.export",
        "torch.jit.ignore",
        "torch.jit.unused",
        "torch.compile",
        "torch.amp.custom_fwd",
        "torch.amp.custom_bwd",
        "torch.cuda.amp.custom_fwd",
        "torch.cuda.amp.custom_bwd",
        "torch.autocast",
        "torch.cuda.amp.autocast",
        "torch.amp.autocast",
        "functools.wraps",
        "functools.lru_cache",
        "functools.cache",
        "abc.abstractmethod",
        "typing.override",
        "torch.no_grad.__call__",
        "torch.set_grad_enabled",
        "typing.final",
    ]
)
"""Decorators that leave what a call gives as it is."""

_NOT_OPAQUE = frozenset(
    [
        "builtins.object",
        "abc.ABC",
        "typing.NamedTuple",
        "typing.Generic",
        "typing.Protocol",
        "enum.Enum",
        "enum.IntEnum",
        "builtins.Exception",
        "torch.utils.data.Dataset",
        "torch.utils.data.IterableDataset",
        "torch.optim.Optimizer",
        "builtins.list",
        "builtins.dict",
        "collections.UserDict",
        "collections.OrderedDict",
        "torch.autograd.Function",
        "builtins.tuple",
        "typing.TypedDict",
    ]
)

_MODULE_NAMES = ("Module", "PreTrainedModel", "ModelMixin", "LightningModule", "GenerativeModel")


def define_function(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
    """The function that a `def` makes."""
    frame = machine.frame
    in_class = isinstance(frame.node, ast.ClassDef)
    function = Function(node, frame.scopes[1:] if in_class else frame.scopes, None, None if in_class else frame.cls)
    if not in_class:
        function.cls = None
    for decorator in node.decorator_list:
        _decorate(machine, function, decorator)
    if not in_class and not machine.is_foreign:
        machine.functions.append(function)
    return function


def _decorate(machine: Machine, function: Function, decorator: ast.expr) -> None:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    value = machine.evaluate(named)
    name = value.name if isinstance(value, External) else ""
    binding: dict[str, Literal["static", "class", "property"]] = {
        "builtins.staticmethod": "static",
        "builtins.classmethod": "class",
        "builtins.property": "property",
        "functools.cached_property": "property",
    }
    if name in binding:
        function.binding = binding[name]
    elif name not in _TRANSPARENT:
        function.followed = False


def define_class(machine: Machine, node: ast.ClassDef) -> None:
    """Bind the class that a `class` statement makes, after interpreting its body."""
    bases = tuple(machine.evaluate(base) for base in node.bases)
    frame = machine.frame
    namespace: dict[str, Value] = {}
    cls = Class(node, bases, namespace, frame.scopes, _is_module(bases, node), _is_opaque(bases))
    with machine.inside(Frame((namespace, *frame.scopes), frame.name, node, cls)):
        for part in node.body:
            if not _is_setter(part):
                machine.execute([part])
    if not machine.is_foreign:
        machine.classes.append(cls)
    # A decorator of a class all but always gives the class back.
    machine.bind(node.name, cls)


def _is_setter(part: ast.stmt) -> bool:
    """`@name.setter` defines no method of that name."""
    return isinstance(part, ast.FunctionDef) and any(
        isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter")
        for decorator in part.decorator_list
    )


def _is_module(bases: tuple[Value, ...], node: ast.ClassDef) -> bool:
    for base in bases:
        if isinstance(base, Class) and (base.is_module or (base.opaque and _has_forward(node))):
            return True
        if isinstance(base, External) and _names_module(base.name, node):
            return True
    return False


def _names_module(name: str, node: ast.ClassDef) -> bool:
    parent, _, last = name.rpartition(".")
    if parent.startswith("torch.nn") or last.endswith(_MODULE_NAMES):
        return not last.startswith("LightningData") and not last.endswith("DataModule")
    return _has_forward(node) and name != "torch.autograd.Function"


def _has_forward(node: ast.ClassDef) -> bool:
    return any(isinstance(part, ast.FunctionDef) and part.name == "forward" for part in node.body)


def _is_opaque(bases: tuple[Value, ...]) -> bool:
    return any(
        (isinstance(base, Class) and base.opaque)
        or (isinstance(base, External) and base.name not in _NOT_OPAQUE and not base.name.startswith("torch.nn."))
        or not isinstance(base, Class | External)
        for base in bases
    )
