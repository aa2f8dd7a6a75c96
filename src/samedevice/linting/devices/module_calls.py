"""Modules of torch.nn: making, moving and calling them; calling modules of the file's own classes."""

from __future__ import annotations

import ast
from dataclasses import replace

from samedevice.linting.devices import attributes, moves, operations, tensor_methods
from samedevice.linting.devices.facts import Operand, WeightUntied
from samedevice.linting.devices.lattice import as_place, join_all
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.operation_tables import PARAMETERLESS, RECURRENT, WEIGHTED, WEIGHTED_LOSSES
from samedevice.linting.devices.places import CPU, CUDA, Cell, Location, Place, resolve
from samedevice.linting.devices.sequences import parameter_of, sequence
from samedevice.linting.devices.values import (
    NOTHING,
    UNKNOWN,
    Constant,
    Device,
    Either,
    Function,
    Held,
    Instance,
    Mapping,
    Module,
    Parameters,
    Sequence,
    Tensor,
    Value,
)

__all__ = ["call", "call_method", "call_moved", "children_from", "construct", "data_parallel", "loader"]

_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
_MOVES = {"cuda": CUDA, "cpu": CPU, "xpu": Place("xpu"), "hpu": Place("hpu"), "npu": Place("npu")}
_SELF = frozenset(
    [
        "train",
        "eval",
        "half",
        "float",
        "double",
        "bfloat16",
        "type",
        "requires_grad_",
        "apply",
        "share_memory",
        "compile",
        "to_empty",
        "register_forward_hook",
        "register_forward_pre_hook",
    ]
)


def construct(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """`nn.Linear(…)` and the like."""
    origin = machine.origin(node, "module")
    if name in _CONTAINERS:
        module = Module(name, None, {}, None, origin)
        module.children = children_from(machine, arguments)
        module.attributes = _named_children(arguments)
        return module
    given = arguments.keywords.get("device")
    place = as_place(given) if given is not None else machine.default_place
    if name in WEIGHTED:
        shared = arguments.keywords.get("_weight")
        if isinstance(shared, Tensor) and shared.kind == "parameter":
            machine.facts.add(WeightUntied(node, arguments.keyword_nodes["_weight"], machine.where()))
        return _with_children(Module(name, None, {}, place, origin), arguments)
    if name in WEIGHTED_LOSSES:
        return _loss(machine, Module(name, None, {}, None, origin), arguments)
    if name[:1].isupper():
        return Module(name, None, {}, None, origin)
    return UNKNOWN


def _with_children(module: Module, arguments: Arguments) -> Module:
    # nn.TransformerEncoder copies the layer that it is given.
    layer = arguments.get(0, "encoder_layer")
    if isinstance(layer, Module) and module.place is None:
        module.place = layer.place
    return module


def _named_children(arguments: Arguments) -> dict[str, Value]:
    first = arguments.positional[0] if arguments.positional else None
    if isinstance(first, Mapping):
        return {str(name): value for name, value in first.entries.items()}
    return {}


def children_from(machine: Machine, arguments: Arguments) -> list[Value]:
    """The children that Sequential, ModuleList and the like are made of."""
    children: list[Value] = []
    for value in arguments.positional:
        if isinstance(value, Sequence):
            children.extend(value.items if value.items is not None else (value.element,))
        elif isinstance(value, Mapping):
            children.extend([*value.entries.values(), *([] if value.element is NOTHING else [value.element])])
        else:
            children.append(value)
    return children


def _loss(machine: Machine, module: Module, arguments: Arguments) -> Module:
    for name, position in (("weight", 0), ("pos_weight", -1)):
        value = arguments.get(position, name)
        if isinstance(value, Tensor):
            node = arguments.node(position, name, module.origin.node)
            held = Held("argument", module.name, name, node, True, machine.frame.name)
            module.attributes[name] = replace(value, kind="buffer", held=held, place=moves.place_of(value), owner=None)
    return module


def call(machine: Machine, module: Module | Either, arguments: Arguments, node: ast.AST) -> Value:
    """`module(…)`."""
    if isinstance(module, Either):
        machine.alternatives.append(module.options)
        return join_all([call(machine, option, arguments, node) for option in module.options])
    if module.external:
        return call_moved(machine, _as_moved(module), arguments, node)
    if module.cls is not None:
        return _call_own(machine, module, arguments, node)
    if module.name == "Sequential":
        return _call_chain(machine, module, arguments, node)
    if module.name == "DistributedDataParallel":
        return machine.call(module.children[0], _brought(machine, arguments, moves.module_place(module), node), node)
    if module.name == "DataParallel" and module.children:
        return _call_replicas(machine, module, arguments, node)
    if module.name in WEIGHTED:
        return _call_weighted(machine, module, arguments, node)
    if module.name.endswith("Loss"):
        return _call_loss(machine, module, arguments, node)
    if module.name in PARAMETERLESS:
        tensor = operations.as_tensor(arguments.positional[0]) if arguments.positional else None
        if tensor is None:
            return UNKNOWN
        return replace(tensor, place=moves.place_of(tensor), owner=None, kind="plain", leaf=False)
    return UNKNOWN


def _as_moved(module: Module) -> Tensor:
    return Tensor(module.place, module.origin, certain=False, held=module.held)


def _call_own(machine: Machine, module: Module, arguments: Arguments, node: ast.AST) -> Value:
    if machine.standalone and len(machine.frames) > 1 and module is not machine.frame.receiver:
        place = moves.module_place(module)
        return Tensor(place, module.origin, None, certain=False, leaf=False) if place is not None else UNKNOWN
    forward = attributes.find(module.cls, "forward") if module.cls else None
    if forward is None or not isinstance(forward[0], Function):
        return _call_chain(machine, module, arguments, node) if module.children else UNKNOWN
    result = machine.call(attributes.read(machine, module, "forward", node), arguments, node)
    return _with_source(result, module)


def _with_source(result: Value, module: Module) -> Value:
    if isinstance(result, Tensor):
        sources = {source for source in result.sources if id(source) not in _inside(module)} | {module}
        return replace(result, place=moves.place_of(result), owner=None, sources=frozenset(sources))
    return result


def _inside(module: Module, seen: set[int] | None = None) -> set[int]:
    seen = set() if seen is None else seen
    if id(module) not in seen:
        seen.add(id(module))
        for part in moves.registered(module):
            if isinstance(part, Module):
                _inside(part, seen)
    return seen


def _call_chain(machine: Machine, module: Module, arguments: Arguments, node: ast.AST) -> Value:
    value: Value | None = None
    for child in module.children:
        given = arguments if value is None else Arguments([value], [node])
        value = machine.call(child, given, node)
    return _with_source(value, module) if value is not None else UNKNOWN


def _call_weighted(machine: Machine, module: Module, arguments: Arguments, node: ast.AST) -> Value:
    weight = Operand(module, module.place, getattr(node, "func", node), "weight")
    operands = [weight]
    hidden: list[Operand] = []
    for position, (value, part, name) in enumerate(arguments.all()):
        recurrent = module.name in RECURRENT and (position == 1 or name in ("hx", "hidden"))
        for tensor, inner, _ in operations.tensors_in(value, part, name):
            operand = Operand(tensor, moves.place_of(tensor), inner, "hx" if recurrent else name or "input")
            (hidden if recurrent else operands).append(operand)
    if operations.may_conflict(operands):
        machine.report(node, module.name, "module", operands)
    operations.link(operands)
    if hidden and operations.may_conflict([weight, *hidden]):
        machine.report(node, module.name, "hidden", [weight, *hidden])
    place = _place_of_result(operands)
    result = Tensor(place, module.origin, False, requires_grad=True, leaf=False, sources=frozenset({module}))
    if module.name in ("LSTM", "GRU", "RNN"):
        state = sequence([result, result], mutable=False) if module.name == "LSTM" else result
        packed = operands[1:2] and isinstance(operands[1].value, Tensor) and not operands[1].value.certain
        return sequence([replace(result, certain=not packed), state], mutable=False)
    if module.name in ("LSTMCell", "MultiheadAttention"):
        return sequence([result, result], mutable=False)
    return result


def _place_of_result(operands: list[Operand]) -> Location | None:
    """Where the result is once the call is mended: with the module, unless only that stayed on the CPU."""
    module, *given = operands
    elsewhere = [o.place for o in given if o.place is not None and operations.may_conflict([module, o])]
    if module.place == CPU and elsewhere and isinstance(resolve(elsewhere[0]), Place):
        return elsewhere[0]
    return module.place


def _call_loss(machine: Machine, module: Module, arguments: Arguments, node: ast.AST) -> Value:
    parts = list(arguments.all())
    if module.name == "CTCLoss":
        parts = parts[:1]
    operands = [
        Operand(tensor, moves.place_of(tensor), part, name or "input")
        for argument in parts
        for tensor, part, name in operations.tensors_in(*argument)
    ]
    weights = [
        Operand(value, value.place, node, name)
        for name, value in module.attributes.items()
        if isinstance(value, Tensor)
    ]
    if operations.may_conflict(operands):
        machine.report(node, module.name, "strict", operands)
    if weights and operands and operations.may_conflict([operands[0], *weights]):
        machine.report(node, module.name, "criterion", [operands[0], *weights])
    result = operations.combine(machine, node, module.name, "none", parts)
    if isinstance(result, Tensor):
        result.scalar = None if "reduction" in module.attributes else True
    return result


def call_moved(machine: Machine, callee: Tensor, arguments: Arguments, node: ast.AST) -> Value:
    """Calling what was moved and is not seen here: only a module can be called."""
    place = moves.place_of(callee)
    operands = [Operand(callee, place, getattr(node, "func", node), "weight")]
    for value, part, name in arguments.all():
        if isinstance(value, Tensor) and value.certain:
            operands.append(Operand(value, moves.place_of(value), part, name or "input"))
    if operations.may_conflict(operands):
        machine.report(node, "the model", "module", operands)
    return Tensor(place, callee.origin, None, certain=False, leaf=False)


def call_method(machine: Machine, module: Module | Either, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """A method of a module that its class in this file does not define."""
    if isinstance(module, Either):
        return join_all([_option_method(machine, option, name, arguments, node) for option in module.options])
    if name.startswith("super:"):
        return UNKNOWN
    if name == "to" or name in _MOVES:
        return _move(machine, module, name, arguments, node)
    if name in _SELF:
        return module
    if name in ("forward", "__call__"):
        return call(machine, module, arguments, node)
    if name in ("parameters", "buffers"):
        return Parameters(module)
    if name in ("named_parameters", "named_buffers"):
        return Sequence(None, sequence([UNKNOWN, parameter_of(module)], mutable=False))
    if name == "state_dict":
        return Mapping({}, parameter_of(module))
    if name in ("children", "modules", "values", "named_children", "named_modules", "items"):
        return _children(module, name)
    if name in ("register_buffer", "register_parameter", "add_module", "register_module"):
        return _register(machine, module, name, arguments, node)
    if name in ("append", "extend", "insert", "update", "__setitem__") and module.cls is None:
        return _grow(machine, module, name, arguments)
    if name == "get_submodule":
        moves.escape(machine, module)
    return UNKNOWN


def _option_method(machine: Machine, option: Module, name: str, arguments: Arguments, node: ast.AST) -> Value:
    return machine.call(attributes.read(machine, option, name, node), arguments, node)


def _move(machine: Machine, module: Module, name: str, arguments: Arguments, node: ast.AST) -> Value:
    if name == "cpu":
        return _apply_move(machine, module, CPU, node)
    if name in _MOVES:
        place = tensor_methods.cuda_index(arguments, _MOVES[name])
        moves.note_elsewhere(place)
        return _apply_move(machine, module, place, node)
    found, given, _ = tensor_methods.target_of(arguments)
    moves.note_elsewhere(found)
    if given:
        return _apply_move(machine, module, found, node)
    return module


def _apply_move(machine: Machine, module: Module, place: Location | None, node: ast.AST) -> Module:
    location = place if place is not None else Cell("an unknown device")
    moves.move_module(machine, module, location, node)
    _own_apply(machine, module, location, node)
    return module


def _own_apply(
    machine: Machine, module: Module, location: Location, node: ast.AST, seen: set[int] | None = None
) -> None:
    """Call `_apply` of the file's own classes, which may move more than what is registered."""
    seen = set() if seen is None else seen
    if id(module) in seen:
        return
    seen.add(id(module))
    if (
        module.cls is not None
        and (found := attributes.find(module.cls, "_apply")) is not None
        and isinstance(found[0], Function)
    ):
        bound = attributes.read(machine, module, "_apply", node)
        machine.call(bound, Arguments([Mover(location)], [node]), node)
    for part in list(moves.registered(module)):
        if isinstance(part, Module):
            _own_apply(machine, part, location, node, seen)


class Mover(Value):
    """The function that `_apply` is given: it moves a tensor."""

    __slots__ = ("place",)

    def __init__(self, place: Location) -> None:
        self.place = place


def apply_mover(machine: Machine, mover: Mover, arguments: Arguments, node: ast.AST) -> Value:
    """`fn(tensor)` inside `_apply`."""
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    return moves.move(machine, value, mover.place, node) if isinstance(value, Tensor) else UNKNOWN


def _children(module: Module, name: str) -> Value:
    inside = [part for part in moves.registered(module) if isinstance(part, Module)]
    if name in ("items", "named_children", "named_modules"):
        return Sequence(None, sequence([UNKNOWN, join_all(inside)], mutable=False))
    return Sequence(tuple(inside) if name == "children" else None, join_all(inside))


def _register(machine: Machine, module: Module, name: str, arguments: Arguments, node: ast.AST) -> Value:
    key = arguments.get(0, "name")
    value = arguments.get(
        1, "tensor" if name == "register_buffer" else "param" if name == "register_parameter" else "module"
    )
    if value is None:
        return Constant(None)
    known = isinstance(key, Constant) and isinstance(key.value, str)
    # Under a computed name each module counts as another one, in whatever round of a loop.
    computed = f"{ast.unparse(arguments.node(0, 'name', node))} {len(module.attributes)}"
    label: str = key.value if isinstance(key, Constant) and known else computed
    if isinstance(value, Tensor) and name == "register_buffer":
        held = Held("attribute", module.name, label, node, True, machine.frame.name)
        value = replace(value, kind="buffer", held=held, place=moves.place_of(value), owner=None)
    machine.memory.write(module.attributes, label, value)
    return Constant(None)


def _grow(machine: Machine, module: Module, name: str, arguments: Arguments) -> Value:
    added = list(module.children)
    for value in arguments.positional:
        if isinstance(value, Sequence) and name != "append":
            added.extend(value.items if value.items is not None else (value.element,))
        elif isinstance(value, Module | Tensor):
            added.append(value)
    machine.memory.assign(module, "children", added)
    return module


def data_parallel(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`nn.DataParallel(module, device_ids)`."""
    module = arguments.get(0, "module")
    if not isinstance(module, Module):
        return module if module is not None else UNKNOWN
    first = Device(_first_device(arguments.get(1, "device_ids")))
    wrapped = Module("DataParallel", None, {"module": module, "first": first}, None, machine.origin(node, "module"))
    wrapped.children = [module]
    return wrapped


def _first_device(ids: Value | None) -> Location | None:
    if ids is None or (isinstance(ids, Constant) and ids.value is None):
        return Place("cuda", 0)
    head = ids.items[0] if isinstance(ids, Sequence) and ids.items else UNKNOWN
    number = head.value if isinstance(head, Constant) else None
    return Place("cuda", number) if isinstance(number, int) else as_place(head)


def _call_replicas(machine: Machine, module: Module, arguments: Arguments, node: ast.AST) -> Value:
    """The module must be on the first device; the inputs are brought there.

    Source: torch/nn/parallel/data_parallel.py, `forward`.
    """
    inner, first = module.children[0], module.attributes["first"]
    if not isinstance(inner, Module) or not isinstance(first, Device):
        return UNKNOWN
    operands = [
        Operand(inner, moves.module_place(inner), module.origin.node, "module"),
        Operand(first, first.place, module.origin.node, "device_ids[0]"),
    ]
    if operations.may_conflict(operands):
        machine.report(node, "DataParallel", "replicas", operands)
        return UNKNOWN
    return machine.call(inner, _brought(machine, arguments, first.place, node), node)


def _brought(machine: Machine, arguments: Arguments, place: Location | None, node: ast.AST) -> Arguments:
    """The arguments after the wrapper has moved them to its device."""
    given = [
        moves.move(machine, value, place, node) if isinstance(value, Tensor) else value
        for value in arguments.positional
    ]
    return Arguments(given, arguments.nodes, arguments.keywords, arguments.keyword_nodes, arguments.complete)


def distributed(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`DistributedDataParallel(module)`: inputs are brought to the module. Source: torch/nn/parallel/distributed.py."""
    module = arguments.get(0, "module")
    if not isinstance(module, Module):
        return module if module is not None else UNKNOWN
    wrapped = Module("DistributedDataParallel", None, {"module": module}, None, machine.origin(node, "module"))
    wrapped.children = [module]
    return wrapped


def loader(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """A DataLoader: its batches are on the CPU unless the dataset holds tensors that are known to be elsewhere."""
    dataset = arguments.get(0, "dataset")
    collate = arguments.keywords.get("collate_fn")
    if collate is not None and not (isinstance(collate, Constant) and collate.value is None):
        if isinstance(collate, Function):
            samples = Sequence(None, dataset.element if isinstance(dataset, Sequence) else UNKNOWN)
            return Sequence(None, _batched(machine.call(collate, Arguments([samples], [node]), node)), node=node)
        return Sequence(None, UNKNOWN, node=node)
    if isinstance(dataset, Instance | Module) and dataset.cls is not None:
        getter = attributes.read(machine, dataset, "__getitem__", node)
        item = machine.call(getter, Arguments([UNKNOWN], [node]), node)
        return Sequence(None, _batched(item), node=node)
    if isinstance(dataset, Sequence):
        return Sequence(None, _batched(dataset.element), node=node)
    return Sequence(None, UNKNOWN, node=node)


def _batched(value: Value) -> Value:
    """What the default collate function makes of a sample: tensors with one more dimension."""
    if isinstance(value, Tensor):
        return replace(value, scalar=False, leaf=False)
    if isinstance(value, Sequence):
        items = tuple(_batched(item) for item in value.items) if value.items is not None else None
        return Sequence(items, _batched(value.element), mutable=False)
    if isinstance(value, Mapping):
        return Mapping({key: _batched(item) for key, item in value.entries.items()}, _batched(value.element))
    return value
