"""Methods of tensors."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from samedevice.linting.devices import module_calls, moves, operations, optimizers
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.lattice import as_place, is_given
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.method_tables import (
    ACCELERATORS,
    KEEPS_A_DIMENSION,
    KEPT_BY_BATCH,
    MEANINGFUL_ON_UNKNOWN,
    MOVES,
    NEW,
    NO_TENSOR,
    NUMBERS,
    REDUCTIONS,
    SEVERAL,
)
from samedevice.linting.devices.operation_tables import ELEMENTWISE, STRICT
from samedevice.linting.devices.places import CPU, Cell, Certainty, Location, Place, resolve
from samedevice.linting.devices.values import (
    UNKNOWN,
    Constant,
    External,
    Function,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["call", "cuda_index", "names_device", "scalar_after", "target_of"]


def call(machine: Machine, tensor: Tensor, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """`tensor.name(…)`."""
    if name == "to":
        return _to(machine, tensor, arguments, node)
    if name == "cpu":
        return moves.moved_tensor(machine, tensor, CPU, node, literal=True)
    if name in MOVES:
        return _cuda(machine, tensor, Place(name), arguments, node)
    if name == "numpy":
        return _numpy(machine, tensor, node)
    if name in NEW:
        return _new(machine, tensor, name, arguments, node)
    if name == "requires_grad_":
        flag = arguments.get(0, "requires_grad")
        machine.memory.assign(tensor, "requires_grad", not (isinstance(flag, Constant) and flag.value is False))
        return tensor
    if name == "register_hook":
        return _hook(machine, tensor, arguments, node)
    if name == "backward":
        optimizers.note_backward(machine, tensor)
        return Constant(None)
    if name in NO_TENSOR:
        return Symbol.named(name, "number")
    if name == "type" and arguments.positional and not _only_dtype(arguments):
        # "torch.cuda.FloatTensor", as `other.type()` gives it, moves too.
        return replace(tensor, place=None, held=None, owner=None, kind="plain")
    if name in ("type_as", "to_dense") and arguments.positional:
        other = operations.as_tensor(arguments.positional[0])
        return replace(tensor, place=moves.place_of(other) if other else None, held=None, owner=None, kind="plain")
    if not tensor.certain and name not in MEANINGFUL_ON_UNKNOWN and name not in KEPT_BY_BATCH:
        return _of_unknown(machine, tensor, name, arguments, node)
    return _operation(machine, tensor, name, arguments, node)


def _of_unknown(machine: Machine, tensor: Tensor, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """A method of a moved object of unknown kind: a model's own method, a batch's field."""
    return module_calls.call_moved(machine, tensor, arguments, node) if name == "generate" else UNKNOWN


def target_of(arguments: Arguments) -> tuple[Location | None, bool, bool]:
    """The device that `.to(…)` is given: where it is, whether one is given, whether it is written as a constant."""
    for value, node, name in arguments.all():
        if name not in ("", "device", "other", "tensor") or _is_no_device(value):
            continue
        if isinstance(value, Tensor):
            return moves.place_of(value), True, False
        if isinstance(value, Constant) and isinstance(value.value, int):
            return Place("cuda", value.value), True, True
        # What is not known may be a device or a dtype; only its name can tell.
        unclear = isinstance(value, Symbol) and name == "" and not _DEVICE_NAME.search(value.name)
        return None if unclear else as_place(value), True, isinstance(node, ast.Constant)
    return None, False, False


def names_device(call: ast.Call) -> bool:
    """Whether a call of `to` may be given a device: not where all that it gets is a dtype, by its name."""
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in ("device", "other"))]
    return any(not _is_dtype(part) for part in given)


def _is_dtype(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.endswith("dtype") or (isinstance(node, ast.Attribute) and _DTYPE.match(name) is not None)


_DTYPE = re.compile(r"(b?float|u?int|complex|bits|q?u?int)\d*$|long$|half$|double$|bool$")
_KINDS = "|".join(sorted(ACCELERATORS))
_DEVICE_NAME = re.compile(
    rf"dev|gpu|cuda|rank|accelerator|where|target|location|(?<![a-z])(?:{_KINDS})(?![a-z])", re.IGNORECASE
)


def _is_no_device(value: Value) -> bool:
    """A dtype, None or a flag."""
    if isinstance(value, External):
        return value.name.startswith("torch.")
    if isinstance(value, Symbol):
        return value.name.endswith("dtype")
    return isinstance(value, Constant) and (value.value is None or isinstance(value.value, bool))


def _to(machine: Machine, tensor: Tensor, arguments: Arguments, node: ast.AST) -> Value:
    if _only_dtype(arguments):
        return replace(
            tensor,
            place=moves.place_of(tensor),
            owner=None,
            kind="plain",
            leaf=tensor.leaf and not tensor.requires_grad,
        )
    place, given, literal = target_of(arguments)
    if not given:
        return tensor
    return moves.moved_tensor(machine, tensor, place, node, literal=literal)


def _only_dtype(arguments: Arguments) -> bool:
    values = [
        (value, name) for value, _, name in arguments.all() if name not in ("non_blocking", "copy", "memory_format")
    ]
    return bool(values) and all(name == "dtype" or _is_no_device(value) for value, name in values)


def cuda_index(arguments: Arguments, kind: Place) -> Location | None:
    """The place that `.cuda(…)` moves to."""
    value = arguments.get(0, "device")
    if not is_given(value):
        return kind
    if isinstance(value, Constant) and isinstance(value.value, int):
        return Place(kind.kind, value.value)
    if isinstance(value, Symbol):
        return Place(kind.kind, value.name)
    return as_place(value)


def _cuda(machine: Machine, tensor: Tensor, kind: Place, arguments: Arguments, node: ast.AST) -> Value:
    given = arguments.get(0, "device")
    literal = given is None or isinstance(given, Constant)
    return moves.moved_tensor(machine, tensor, cuda_index(arguments, kind), node, literal=literal)


def _numpy(machine: Machine, tensor: Tensor, node: ast.AST) -> Value:
    place = moves.place_of(tensor)
    operands = [
        Operand(tensor, place, getattr(getattr(node, "func", node), "value", node)),
        Operand(UNKNOWN, CPU, node),
    ]
    found = resolve(place) if place is not None else None
    if isinstance(found, Cell) and found.evidence < Certainty.CERTAIN:
        found.join(CPU)  # Code that takes its argument for one on the CPU works with others on it.
    elif tensor.certain and operations.may_conflict(operands):
        machine.report(node, "numpy", "numpy", operands)
    return Symbol.named("an array", "number")


def _new(machine: Machine, tensor: Tensor, name: str, arguments: Arguments, node: ast.AST) -> Value:
    given = arguments.keywords.get("device")
    place = as_place(given) if is_given(given) else moves.place_of(tensor)
    how = "made on" if is_given(given) else "made like"
    return Tensor(place, machine.origin(node, how), None if name == "new_tensor" else False)


def _hook(machine: Machine, tensor: Tensor, arguments: Arguments, node: ast.AST) -> Value:
    """A gradient hook is called with the gradient, which is where the tensor is."""
    hook = arguments.get(0, "hook")
    if isinstance(hook, Function):
        gradient = Tensor(None, tensor.origin, False, owner=tensor.owner, leaf=False)
        if tensor.owner is None:
            gradient.place = tensor.place
        machine.call(hook, Arguments([gradient], [node]), node)
    return UNKNOWN


def _operation(machine: Machine, tensor: Tensor, name: str, arguments: Arguments, node: ast.AST) -> Value:
    receiver = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
    operands: list[operations.Argument] = [(tensor, receiver, "self")]
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    role = "strict" if base in STRICT else "elementwise" if base in ELEMENTWISE else "none"
    if base == "masked_fill":
        operands.extend(list(arguments.all())[:1])
    elif base in ("copy", "type", "expand_as", "view_as", "reshape_as", "resize_as", "fill"):
        role = "none"
    elif role != "none":
        operands.extend(arguments.all())
    if role == "elementwise" and base != name:
        role = "inplace"
    result = operations.combine(machine, node, name, role, operands)
    if not isinstance(result, Tensor):
        return result
    if base != name:
        return tensor
    if role == "none":
        kind = tensor.kind if name == "contiguous" else "plain"
        result = replace(result, place=moves.place_of(tensor), kind=kind, copied=tensor.copied or _copies(name, tensor))
    result = replace(result, scalar=scalar_after(name, tensor, result, arguments))
    return Sequence(None, result, mutable=False) if name in SEVERAL and tensor.certain else result


def _copies(name: str, tensor: Tensor) -> bool:
    return name in ("clone", "detach") and (tensor.owner is not None or tensor.kind == "parameter")


def scalar_after(name: str, tensor: Tensor, result: Tensor, arguments: Arguments) -> bool | None:
    """Whether the result of an operation has no dimensions."""
    if name in REDUCTIONS:
        keep = arguments.keywords.get("keepdim")
        if isinstance(keep, Constant) and keep.value is True:
            return False
        given = arguments.get(0, "dim") or arguments.keywords.get("axis")
        if given is None:
            return True
        if isinstance(given, Tensor):
            return result.scalar
        return False if _is_inner(given) else None
    if name in NUMBERS:
        return True
    if name in KEEPS_A_DIMENSION:
        reinterprets = name == "view" and isinstance(arguments.get(0, "dtype"), External)
        return tensor.scalar if reinterprets else False
    if name == "squeeze" and _is_inner(arguments.get(0, "dim")):
        return tensor.scalar
    if name in ("squeeze", "select", "unbind", "__getitem__"):
        return None
    return result.scalar


def _is_inner(dimension: Value | None) -> bool:
    """A dimension that only a tensor of two or more has, so that one is left without it."""
    if not isinstance(dimension, Constant) or not isinstance(dimension.value, int):
        return False
    return dimension.value >= 1 or dimension.value <= -2
