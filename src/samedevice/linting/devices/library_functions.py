"""Functions of Python, numpy and other libraries, as far as they carry tensors or modules through.

Those that go through iterables are in iterables.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from samedevice.linting.devices import (
    accelerate,
    attributes,
    command_line,
    copying,
    iterables,
    moves,
    operations,
    truth,
)
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.places import CPU
from samedevice.linting.devices.sequences import unpack
from samedevice.linting.devices.values import (
    UNKNOWN,
    Constant,
    External,
    Instance,
    Module,
    Partial,
    Sequence,
    Symbol,
    Value,
)

__all__ = ["call", "started"]

Handler = Callable[[Machine, Arguments, ast.AST], Value]


def call(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """The value of calling an imported or built-in function."""
    handler = _TABLE.get(name)
    if handler is not None:
        return handler(machine, arguments, node)
    if name.startswith("numpy."):
        return _numpy(machine, name, arguments, node)
    if not name.startswith(("builtins.", "copy.", "math.", "logging.", "torchsummary.", "torchinfo.")):
        for value, _, _ in arguments.all():
            moves.escape(machine, value)
    if name.startswith("torchvision.models.") or name == "timm.create_model":
        return _pretrained(machine, name, node)
    if name.endswith(".from_pretrained") and "device_map" not in arguments.keywords:
        kind = name.split(".")[-2]
        return _pretrained(machine, kind, node) if "Model" in kind or "For" in kind else UNKNOWN
    return UNKNOWN


def _pretrained(machine: Machine, name: str, node: ast.AST) -> Value:
    """A model of another library; its parameters are made on the default device."""
    model = name.rpartition(".")[2]
    if not model.islower() and model[:1].isupper() and "Weights" in model:
        return UNKNOWN
    return Module(model, None, {}, machine.default_place, machine.origin(node, "module"), external=True)


def _numpy(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """Source: Tensor.__array__: a tensor on another device is refused."""
    for value, part, given in arguments.all():
        if given in ("size", "shape", "axis"):
            continue  # Python's own `__index__` asks for these: that brings a number from any device.
        for tensor, inner, _ in operations.tensors_in(value, part, ""):
            which = "item" if isinstance(value, Sequence) and inner is part else ""
            operands = [Operand(tensor, moves.place_of(tensor), inner, which), Operand(UNKNOWN, CPU, node)]
            if tensor.certain and operations.may_conflict(operands) and name != "numpy.prod":
                machine.report(node, name, "numpy", operands)
    return Symbol.named(name, "number")


def _is_instance(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    if len(arguments.positional) != 2:
        return UNKNOWN
    known = truth.is_instance(machine, arguments.positional[0], arguments.positional[1])
    return UNKNOWN if known is None else Constant(known)


def _getattr(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    if len(arguments.positional) < 2:
        return UNKNOWN
    owner, name = arguments.positional[:2]
    if isinstance(name, Constant) and isinstance(name.value, str):
        if len(arguments.positional) == 2:
            return attributes.read(machine, owner, name.value, node)
        return UNKNOWN
    moves.escape(machine, owner)
    if isinstance(owner, Instance):
        attributes.forget(machine, owner)
    # Which function of torch is not known; if it makes a tensor, it does so on the default device.
    return External("torch.*") if isinstance(owner, External) and owner.name == "torch" else UNKNOWN


def _all_attributes(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`vars(x)` and `dir(x)`."""
    for value in arguments.positional:
        attributes.forget(machine, value)
    return UNKNOWN


def _setattr(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    if len(arguments.positional) == 3:
        owner, name, value = arguments.positional
        known = isinstance(name, Constant) and isinstance(name.value, str)
        label = name.value if isinstance(name, Constant) and known else ast.unparse(arguments.nodes[1])
        attributes.write(machine, owner, label, value, node)
        if not known and isinstance(owner, Instance):
            attributes.forget(machine, owner)
    return Constant(None)


def _namespace(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return Instance(None, dict(arguments.keywords), open=True)


def _partial(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    if not arguments.positional or not arguments.complete:
        return UNKNOWN
    rest = Arguments(arguments.positional[1:], arguments.nodes[1:], arguments.keywords, arguments.keyword_nodes)
    return Partial(arguments.positional[0], rest)


def _len(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    items = unpack(machine, value, node)
    return UNKNOWN if items is None else Constant(len(items))


def _text(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    return Constant(str(value.value)) if isinstance(value, Constant) else UNKNOWN


def _number(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if len(arguments.positional) == 1 else UNKNOWN
    return value if isinstance(value, Constant) and isinstance(value.value, int) else UNKNOWN


def started(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`threading.Thread(target=f, args=…)`: the function is called sooner or later."""
    target, given = arguments.keywords.get("target"), arguments.keywords.get("args")
    if target is not None:
        items = list(given.items) if isinstance(given, Sequence) and given.items is not None else []
        machine.call(target, Arguments(items, [node] * len(items), complete=bool(items) or given is None), node)
    return UNKNOWN


def _setting(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """An environment variable: its default, else something that keeps its identity."""
    if len(arguments.positional) > 1:
        return arguments.positional[1]
    return machine.symbol(ast.unparse(node) if isinstance(node, ast.expr) else "…")


_TABLE: dict[str, Handler] = {
    **iterables.FUNCTIONS,
    "builtins.isinstance": _is_instance,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.vars": _all_attributes,
    "builtins.dir": _all_attributes,
    "builtins.len": _len,
    "builtins.str": _text,
    "builtins.int": _number,
    "threading.Thread": started,
    "multiprocessing.Process": started,
    "copy.deepcopy": copying.deepcopy,
    "copy.copy": copying.deepcopy,
    "functools.partial": _partial,
    "types.SimpleNamespace": _namespace,
    "argparse.Namespace": _namespace,
    "argparse.ArgumentParser": command_line.made,
    "accelerate.Accelerator": accelerate.made,
    "accelerate.accelerator.Accelerator": accelerate.made,
    "os.environ.get": _setting,
    "os.getenv": _setting,
}
