"""Functions and classes of torch that are called by name."""

from __future__ import annotations

import ast
from collections.abc import Callable

from samedevice.linting.devices import module_calls, moves, operations, optimizers, truth
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.lattice import as_place
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.operation_tables import ELEMENTWISE, FACTORIES, LIKE, STRICT
from samedevice.linting.devices.places import CPU, CUDA, Location, Place, resolve
from samedevice.linting.devices.sequences import part_of
from samedevice.linting.devices.tensor_methods import scalar_after
from samedevice.linting.devices.values import (
    UNKNOWN,
    Constant,
    Device,
    External,
    Function,
    Generator,
    Mapping,
    Module,
    Parameters,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["call"]

Handler = Callable[[Machine, Arguments, ast.AST], Value]


def call(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """The value of calling `name`, a dotted name that begins with "torch."."""
    handler = _EXACT.get(name)
    if handler is not None:
        return handler(machine, arguments, node)
    parent, _, last = name.rpartition(".")
    if parent == "torch.nn" or parent.startswith("torch.nn.modules"):
        return module_calls.construct(machine, last, arguments, node)
    if parent.startswith("torch.optim") and last[:1].isupper():
        return optimizers.construct(machine, parent, last, arguments, node)
    if parent.startswith("torch.distributions"):
        return _distribution(machine, arguments, node)
    if parent in ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft"):
        return _function(machine, last, arguments, node)
    if parent.startswith("torch.nn.utils.rnn"):
        return _sequence_function(machine, last, arguments, node)
    return UNKNOWN


def _function(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    if name in FACTORIES:
        return _factory(machine, name, arguments, node)
    if name in LIKE:
        return _like(machine, arguments, node)
    base = name[:-1] if name.endswith("_") else name
    role = "strict" if base in STRICT else "elementwise" if base in ELEMENTWISE else "none"
    if base == "masked_fill":
        operands = list(arguments.all())[:2]
    else:
        operands = [part for part in arguments.all() if part[2] not in ("out", "generator", "sorter")]
    result = operations.combine(machine, node, name, role, operands)
    if not isinstance(result, Tensor):
        return result
    first = operations.as_tensor(arguments.positional[0]) if arguments.positional else None
    rest = Arguments(arguments.positional[1:], arguments.nodes[1:], arguments.keywords, arguments.keyword_nodes)
    result.scalar = (
        scalar_after(name, first, result, rest) if first is not None else False if role == "strict" else None
    )
    if name in _LOSSES:
        reduction = arguments.keywords.get("reduction")
        result.scalar = True if reduction is None else None
    elif name in _NEVER_SCALAR:
        result.scalar = False
    return result


_LOSSES = frozenset(
    [
        "cross_entropy",
        "mse_loss",
        "l1_loss",
        "nll_loss",
        "smooth_l1_loss",
        "huber_loss",
        "binary_cross_entropy",
        "kl_div",
        "binary_cross_entropy_with_logits",
        "ctc_loss",
    ]
)
_NEVER_SCALAR = frozenset(
    [
        "cat",
        "stack",
        "hstack",
        "vstack",
        "matmul",
        "mm",
        "bmm",
        "linear",
        "embedding",
        "conv1d",
        "conv2d",
        "conv3d",
        "outer",
        "bincount",
        "one_hot",
        "flatten",
        "reshape",
        "unsqueeze",
        "nonzero",
        "tril",
        "triu",
        "stft",
        "cdist",
        "meshgrid",
        "as_tensor_",
    ]
)


def _factory(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    given = arguments.keywords.get("device")
    place, how, literal = machine.default_place, "made", False
    if given is not None and not (isinstance(given, Constant) and given.value is None):
        place, how = as_place(given), "made on"
        literal = isinstance(arguments.keyword_nodes["device"], ast.Constant)
        moves.note_elsewhere(place)
    elif not arguments.complete:
        place = None
    generator = arguments.keywords.get("generator")
    if isinstance(generator, Generator):
        _check_generator(machine, generator, place, arguments, node)
    if name == "normal" and any(isinstance(value, Tensor) for value in arguments.positional):
        return operations.combine(machine, node, name, "elementwise", list(arguments.all()))
    grad = arguments.keywords.get("requires_grad")
    return Tensor(
        place,
        machine.origin(node, how, literal=literal),
        _has_no_dimensions(name, arguments),
        requires_grad=isinstance(grad, Constant) and grad.value is True,
    )


def _has_no_dimensions(name: str, arguments: Arguments) -> bool | None:
    first = arguments.get(0, "data" if name == "tensor" else "size")
    if name in ("tensor", "scalar_tensor"):
        if isinstance(first, Constant) and isinstance(first.value, int | float | bool):
            return True
        node = arguments.nodes[0] if arguments.nodes else None
        known = isinstance(first, Sequence) or isinstance(node, ast.List | ast.ListComp | ast.Tuple)
        return False if known else None
    if isinstance(first, Sequence) and first.items == () and len(arguments.positional) < 2:
        return True
    return bool(isinstance(first, Sequence) and first.items == () and name == "full")


def _check_generator(
    machine: Machine, generator: Generator, place: Location | None, arguments: Arguments, node: ast.AST
) -> None:
    """Source: the check of `check_generator`: "Expected a 'cuda' device type for generator but found 'cpu'"."""
    here = Operand(UNKNOWN, place, node, "device")
    there = Operand(generator, generator.place, arguments.keyword_nodes["generator"], "generator")
    if operations.may_conflict([here, there]):
        machine.report(node, "generator", "generator", [there, here])


def _like(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    first = arguments.get(0, "input")
    tensor = operations.as_tensor(first) if first is not None else None
    given = arguments.keywords.get("device")
    if given is not None and not (isinstance(given, Constant) and given.value is None):
        place = as_place(given)
        moves.note_elsewhere(place)
        return Tensor(place, machine.origin(node, "made on"), tensor.scalar if tensor else None)
    if tensor is None:
        return UNKNOWN
    return Tensor(moves.place_of(tensor), tensor.origin, tensor.scalar, held=tensor.held, part_of=tensor.part_of)


def _device(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    first = arguments.get(0, "type")
    index = arguments.get(1, "index")
    if first is None:
        return UNKNOWN
    place = as_place(first)
    if isinstance(first, Constant) and isinstance(first.value, int) and not isinstance(first.value, bool):
        return Device(Place("cuda", first.value))
    if index is not None and isinstance(place, Place) and place != CPU:
        if isinstance(index, Constant) and isinstance(index.value, int):
            return Device(Place(place.kind, index.value))
        return Device(Place(place.kind, _index_text(index, arguments)))
    return Device(place)


def _index_text(index: Value, arguments: Arguments) -> str:
    node = arguments.node(1, "index", ast.Constant(0))
    return index.name if isinstance(index, Symbol) else ast.unparse(node)


def _generator(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    given = arguments.get(0, "device")
    return Generator(
        CPU if given is None else as_place(given), machine.origin(node, "made" if given is None else "made on")
    )


def _as_tensor(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    given = arguments.keywords.get("device")
    first = arguments.get(0, "data")
    if given is not None and not (isinstance(given, Constant) and given.value is None):
        place = as_place(given)
        moves.note_elsewhere(place)
        return Tensor(place, machine.origin(node, "made on"), None)
    if isinstance(first, Tensor | Symbol) or first is UNKNOWN:
        return first if isinstance(first, Tensor) else Tensor(None, None, None)
    return Tensor(machine.default_place, machine.origin(node, "made"), None)


def _from_numpy(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return Tensor(CPU, machine.origin(node, "numpy"), False)


def _load(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    given = arguments.get(1, "map_location")
    literal = isinstance(given, Constant)
    place = as_place(given) if given is not None else _saved_place(machine)
    how = "loaded" if given is None or (isinstance(given, Constant) and given.value is None) else "loaded to"
    return Tensor(place, machine.origin(node, how, literal=literal), None, certain=False)


def _saved_place(machine: Machine) -> Location | None:
    """Where everything that the file saves is: `torch.load` brings it back there."""
    saved = machine.saved
    return saved[0] if saved and all(place == saved[0] for place in saved) else None


def _save(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    for value in _leaves(arguments.get(0, "obj") or UNKNOWN):
        place = moves.place_of(value) if isinstance(value, Tensor) else moves.module_place(value)
        found = resolve(place) if place is not None else None
        if isinstance(found, Place):
            machine.saved.append(found)
    return UNKNOWN


def _leaves(value: Value, depth: int = 0) -> list[Tensor | Module]:
    if isinstance(value, Tensor | Module):
        return [value]
    if isinstance(value, Parameters):
        return _leaves(value.module, depth + 1)
    inside: tuple[Value, ...] = ()
    if isinstance(value, Mapping):
        inside = (*value.entries.values(), value.element)
    elif isinstance(value, Sequence):
        inside = value.items or (value.element,)
    return [leaf for part in inside if depth < 4 for leaf in _leaves(part, depth + 1)]


def _true(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return Constant(True)


def _first(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return arguments.positional[0] if arguments.positional else UNKNOWN


def _is_tensor(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    known = truth.is_instance(machine, value, External("torch.Tensor"))
    return UNKNOWN if known is None else Constant(known)


def _parameter(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    data = arguments.get(0, "data")
    grad = arguments.get(1, "requires_grad")
    tensor = operations.as_tensor(data) if data is not None else None
    place = moves.place_of(tensor) if tensor else None
    wants = not (isinstance(grad, Constant) and grad.value is False)
    return Tensor(
        place, machine.origin(node, "module"), tensor.scalar if tensor else None, kind="parameter", requires_grad=wants
    )


def _buffer(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    data = arguments.get(0, "data")
    tensor = operations.as_tensor(data) if data is not None else None
    return Tensor(moves.place_of(tensor) if tensor else None, machine.origin(node, "module"), None, kind="buffer")


def _set_default(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    machine.default_place = as_place(arguments.positional[0]) if arguments.positional else CPU
    return UNKNOWN


def _unset_default(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    machine.default_place = None
    return UNKNOWN


def _set_current(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.get(0, "device")
    if not (isinstance(value, Constant) and value.value == 0):
        machine.facts.current_index = None
    return UNKNOWN


def _current(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return Constant(0) if machine.facts.current_index == 0 else UNKNOWN


def _accelerator(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return Device(CUDA)


def _distribution(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    result = operations.combine(machine, node, "distribution", "elementwise", list(arguments.all()))
    if isinstance(result, Tensor):
        result.certain = False
    return result


def _dataset(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    items = tuple(part_of(machine, v) if isinstance(v, Tensor) else UNKNOWN for v in arguments.positional)
    for item, given in zip(items, arguments.positional, strict=True):
        if isinstance(item, Tensor) and isinstance(given, Tensor):
            item.scalar = given.scalar if given.scalar is not None else False
    return Sequence(None, Sequence(items, mutable=False), node=node)


def _sequence_function(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    first = arguments.positional[0] if arguments.positional else UNKNOWN
    if name == "pack_padded_sequence":
        return _pack(machine, arguments, node)
    if name == "pad_packed_sequence" and isinstance(first, Tensor):
        return Sequence((Tensor(moves.place_of(first), first.origin, False), Tensor(CPU, None, False)), mutable=False)
    if name in ("pad_sequence", "pack_sequence"):
        result = operations.combine(machine, node, name, "none", [(first, node, "")])
        if isinstance(result, Tensor):
            result.scalar, result.certain = False, name == "pad_sequence"
        return result
    return UNKNOWN


def _pack(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """Source: torch/nn/utils/rnn.py and native/PackedSequence.cpp: `lengths` must be on the CPU."""
    lengths = arguments.get(1, "lengths")
    if isinstance(lengths, Tensor):
        operands = [
            Operand(lengths, moves.place_of(lengths), arguments.node(1, "lengths", node), "lengths"),
            Operand(UNKNOWN, CPU, node, "cpu"),
        ]
        if operations.may_conflict(operands):
            machine.report(node, "pack_padded_sequence", "lengths", operands)
    first = operations.as_tensor(arguments.get(0, "input") or UNKNOWN)
    if first is None:
        return UNKNOWN
    return Tensor(moves.place_of(first), first.origin, False, certain=False, sources=first.sources)


def _checkpoint(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """torch.utils.checkpoint.checkpoint(function, *args): calls the function."""
    if not arguments.positional or not isinstance(arguments.positional[0], Function | Module):
        return UNKNOWN
    rest = Arguments(arguments.positional[1:], arguments.nodes[1:])
    return machine.call(arguments.positional[0], rest, node)


_EXACT: dict[str, Handler] = {
    "torch.device": _device,
    "torch.Generator": _generator,
    "torch.as_tensor": _as_tensor,
    "torch.asarray": _as_tensor,
    "torch.from_numpy": _from_numpy,
    "torch.frombuffer": _from_numpy,
    "torch.load": _load,
    "torch.save": _save,
    "torch.is_tensor": _is_tensor,
    "torch.cuda.is_available": _true,
    "torch.accelerator.is_available": _true,
    "torch.accelerator.current_accelerator": _accelerator,
    "torch.cuda.set_device": _set_current,
    "torch.cuda.current_device": _current,
    "torch.set_default_device": _set_default,
    "torch.set_default_tensor_type": _unset_default,
    "torch.compile": _first,
    "torch.jit.script": _first,
    "torch.jit.trace": _first,
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.nn.Buffer": _buffer,
    "torch.nn.parameter.Buffer": _buffer,
    "torch.nn.DataParallel": module_calls.data_parallel,
    "torch.nn.parallel.DataParallel": module_calls.data_parallel,
    "torch.nn.parallel.DistributedDataParallel": module_calls.distributed,
    "torch.nn.parallel.distributed.DistributedDataParallel": module_calls.distributed,
    "torch.utils.data.DataLoader": module_calls.loader,
    "torch.utils.data.dataloader.DataLoader": module_calls.loader,
    "torch.utils.data.TensorDataset": _dataset,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
}
