"""Calling modules: those of torch.nn, of the file's own classes, and those that are not seen here."""

from __future__ import annotations

import ast
from dataclasses import replace

from samedevice.linting.devices import attributes, moves, operations
from samedevice.linting.devices.contents import all_inside, modules_inside
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.lattice import join_all
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.operation_tables import PARAMETERLESS, RECURRENT, WEIGHTED
from samedevice.linting.devices.places import CPU, Location, Place, resolve
from samedevice.linting.devices.sequences import sequence
from samedevice.linting.devices.values import (
    UNKNOWN,
    Device,
    Either,
    Function,
    Mapping,
    Module,
    Tensor,
    Value,
)
from samedevice.texts import say

__all__ = ["call", "call_moved"]


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
        # One that nobody has moved may be moved later, or bring its parameters to what it is given.
        if place is None or place == CPU:
            return UNKNOWN
        return Tensor(place, module.origin, None, certain=False, leaf=False)
    forward = attributes.find(module.cls, "forward") if module.cls else None
    if forward is None or not isinstance(forward[0], Function):
        return _call_chain(machine, module, arguments, node) if module.children else UNKNOWN
    for hook in module.pre_hooks:
        given = sequence(arguments.positional, mutable=False)
        machine.call(hook, Arguments([module, given, Mapping(dict(arguments.keywords))], [node] * 3), node)
    before, machine.traced = machine.traced, module.traced or machine.traced
    chain, machine.chain = machine.chain, None
    called, machine.called = machine.called, machine.called or _as_called(machine, module)
    try:
        result = machine.call(attributes.read(machine, module, "forward", node), arguments, node)
    finally:
        machine.traced, machine.chain, machine.called = before, chain, called
    return _with_source(_hooked(machine, module, arguments, result, node), module)


def _as_called(machine: Machine, module: Module) -> tuple[Module, int] | None:
    """A model that is called by the file itself and that nothing has moved yet."""
    if machine.standalone or module.moved or module.symbolic or module.origin.foreign or machine.is_foreign:
        return None
    return (module, len(machine.frames)) if moves.module_place(module) == CPU else None


def _hooked(machine: Machine, module: Module, arguments: Arguments, result: Value, node: ast.AST) -> Value:
    """The result after the forward hooks, which may replace it."""
    for hook in module.hooks:
        given = sequence(arguments.positional, mutable=False)
        replaced = machine.call(hook, Arguments([module, given, result], [node] * 3), node)
        if isinstance(replaced, Tensor):
            result = replaced
    return result


def _with_source(result: Value, module: Module) -> Value:
    if isinstance(result, Tensor):
        sources = {source for source in result.sources if id(source) not in all_inside(module)} | {module}
        return replace(result, place=moves.place_of(result), owner=None, sources=frozenset(sources))
    return result


def _call_chain(machine: Machine, module: Module, arguments: Arguments, node: ast.AST) -> Value:
    if not machine.spend(1):
        return UNKNOWN
    value: Value | None = None
    given = arguments
    before, machine.chain = machine.chain, machine.chain or module
    try:
        for child in module.children:
            value = machine.call(child, given, node)
            # What a layer without parameters passes on is in the wrong place only if what it got was.
            kept = isinstance(child, Module) and child.name in PARAMETERLESS and len(given.nodes) == 1
            given = Arguments([value], given.nodes if kept else [node])
    finally:
        machine.chain = before
    return _with_source(value, module) if value is not None else UNKNOWN


def _call_weighted(machine: Machine, module: Module, arguments: Arguments, node: ast.AST) -> Value:
    weight = Operand(
        module,
        module.place,
        getattr(node, "func", node),
        "weight",
        model=_model_of(machine, module),
        whole=machine.chain,
    )
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
    if module.hooks:
        hooked = _hooked(machine, module, arguments, result, node)
        result = hooked if isinstance(hooked, Tensor) else result
    if module.name in ("LSTM", "GRU", "RNN"):
        state = sequence([result, result], mutable=False) if module.name == "LSTM" else result
        packed = operands[1:2] and isinstance(operands[1].value, Tensor) and not operands[1].value.certain
        return sequence([replace(result, certain=not packed), state], mutable=False)
    if module.name in ("LSTMCell", "MultiheadAttention"):
        return sequence([result, result], mutable=False)
    return result


def _model_of(machine: Machine, layer: Module) -> Module | None:
    """The model that is being called, where it has the layer registered: moving the one moves the other."""
    model = machine.called[0] if machine.called is not None else None
    return model if model is not None and any(each is layer for each in modules_inside(model)) else None


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
        if isinstance(value, Tensor) and (value.certain or name == "**" or value.part_of is not None):
            operands.append(Operand(value, moves.place_of(value), part, name or "input"))
    if operations.may_conflict(operands):
        machine.report(node, say("the model"), "module", operands)
    return Tensor(place, callee.origin, None, certain=False, leaf=False)


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
