"""Optimizers: which modules' parameters they hold, and whether those are still the modules' own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.linting.devices import moves, operations
from samedevice.linting.devices.contents import all_inside
from samedevice.linting.devices.facts import LostLeaf, Operand, ScalerWithoutGradients, StaleParameters
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.operations import may_conflict
from samedevice.linting.devices.places import CPU
from samedevice.linting.devices.sequences import parameter_of
from samedevice.linting.devices.values import (
    UNKNOWN,
    Constant,
    Either,
    Mapping,
    Module,
    Optimizer,
    Parameters,
    Sequence,
    Tensor,
    Value,
)

__all__ = ["construct", "loaded", "note_backward", "step", "step_scaled"]

_STATE_AT_BIRTH = frozenset({"Adagrad"})
"""Allocate their state when they are built, where the parameters are then. Source: torch/optim/adagrad.py."""


def construct(machine: Machine, parent: str, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """A call of a class of torch.optim."""
    if parent not in ("torch.optim", f"torch.optim.{name.lower()}") or name in ("Optimizer",):
        return UNKNOWN
    params = arguments.get(0, "params") or UNKNOWN
    for tensor, where in _tensors(params, arguments.node(0, "params", node)):
        if tensor.lost_leaf:
            machine.note(LostLeaf(where, "optimizer", tensor, machine.where()))
    modules = tuple(_modules(params))
    snapshots = tuple((module, tuple(_contents(module))) for module in modules)
    place = moves.module_place(modules[0]) if modules and name in _STATE_AT_BIRTH else None
    made = Optimizer(
        name, machine.own(node), snapshots, Sequence(None, _parameter_of(params)), machine.frame.name, place
    )
    made.has_state = name != "SGD" or "momentum" in arguments.keywords
    if any(not _is_off(arguments.keywords.get(option, Constant(False))) for option in ("capturable", "fused")):
        made.capturable = made.node
    machine.optimizers.append(made)
    return made


def _is_off(option: Value) -> bool:
    return isinstance(option, Constant) and not option.value


def _parameter_of(params: Value) -> Value:
    for module in _modules(params):
        return parameter_of(module)
    return params.element if isinstance(params, Sequence) else UNKNOWN


def _tensors(params: Value, node: ast.AST, depth: int = 0) -> Iterator[tuple[Tensor, ast.AST]]:
    if isinstance(params, Tensor):
        yield params, node
    elif isinstance(params, Sequence) and depth < 4:
        for part in params.items or (params.element,):
            yield from _tensors(part, node, depth + 1)
    elif isinstance(params, Mapping):
        yield from _tensors(params.entries.get("params", UNKNOWN), node, depth + 1)


def _modules(params: Value, depth: int = 0) -> Iterator[Module]:
    """The modules whose parameters are among `params`."""
    if isinstance(params, Parameters):
        if isinstance(params.module, Module):
            yield params.module
        elif isinstance(params.module, Either):
            yield from params.module.options
    elif isinstance(params, Tensor) and params.owner is not None:
        yield params.owner
    elif isinstance(params, Sequence) and depth < 5:
        for part in params.items or (params.element,):
            yield from _modules(part, depth + 1)
    elif isinstance(params, Mapping) and depth < 5:
        yield from _modules(params.entries.get("params", UNKNOWN), depth + 1)


def _contents(module: Module, seen: set[int] | None = None) -> Iterator[tuple[Module, str, Value]]:
    """Each module inside, and the attributes under which it holds parameters and children."""
    seen = set() if seen is None else seen
    if id(module) in seen:
        return
    seen.add(id(module))
    for name, value in module.attributes.items():
        if isinstance(value, Module) or (
            isinstance(value, Tensor) and value.kind == "parameter" and value.owner is None
        ):
            yield module, name, value
    for position, child in enumerate(module.children):
        yield module, f"{module.name}[{position}]", child
    for part in moves.registered(module):
        if isinstance(part, Module):
            yield from _contents(part, seen)


def note_backward(machine: Machine, loss: Tensor | None) -> None:
    """`loss.backward()`: which modules get gradients; None where the loss is not known."""
    now = tuple(operations.sources_of(loss)) if loss is not None else ()
    before = machine.backward.get("all")
    earlier = before.items or () if isinstance(before, Sequence) else ()
    machine.memory.write(machine.backward, "modules", Sequence(now))
    machine.memory.write(machine.backward, "all", Sequence((*earlier, *now)))
    if not now:
        machine.memory.write(machine.backward, "incomplete", UNKNOWN)


def step_scaled(machine: Machine, optimizer: Optimizer, node: ast.AST) -> None:
    """`scaler.step(optimizer)`: the scaler needs gradients of this optimizer's parameters.

    Source: torch/amp/grad_scaler.py, `step`: "No inf checks were recorded for this optimizer."
    """
    step(machine, optimizer, node)
    trained = machine.backward.get("all")
    if (
        "incomplete" in machine.backward
        or not isinstance(trained, Sequence)
        or not trained.items
        or not optimizer.modules
    ):
        return
    held = {inner for module, _ in optimizer.modules for inner in all_inside(module)}
    reached = {inner for module in trained.items if isinstance(module, Module) for inner in all_inside(module)}
    if not held & reached:
        machine.facts.add(ScalerWithoutGradients(machine.own(node), optimizer, machine.where()))


def step(machine: Machine, optimizer: Optimizer, node: ast.AST) -> None:
    """`optimizer.step()`: whether it still steps what is trained, and where its state is."""
    replaced = _replaced(optimizer)
    if replaced is None:
        replaced = _rebuilt(machine, optimizer)
    if replaced is not None:
        machine.facts.add(StaleParameters(machine.own(node), optimizer, replaced, machine.where()))
    elif optimizer.modules:
        _check_state(machine, optimizer, optimizer.modules[0][0], node)


def _check_state(machine: Machine, optimizer: Optimizer, module: Module, node: ast.AST) -> None:
    """The state was made where the parameters were at the first step, and does not follow them."""
    if not optimizer.has_state:
        return
    now = moves.module_place(module)
    _check_counts(machine, optimizer, module, node)
    if optimizer.place is None:
        machine.memory.assign(optimizer, "place", now)
        return
    operands = [Operand(optimizer, optimizer.place, optimizer.node, "state"), Operand(module, now, node, "params")]
    if may_conflict(operands):
        machine.report(node, "step", "optimizer", operands)


_COUNTING = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta", "Rprop"})
"""Count their steps in tensors on the CPU, on the device if `capturable`. Source: torch/optim/*.py, `_init_group`."""


def _check_counts(machine: Machine, optimizer: Optimizer, module: Module, node: ast.AST) -> None:
    """Source: torch/optim/adam.py: "If capturable=True, params and state_steps must be on supported devices"."""
    if optimizer.name not in _COUNTING or optimizer.capturable is optimizer.node:
        return
    if optimizer.capturable is None:
        machine.memory.assign(optimizer, "counts_on_cpu", True)
    elif optimizer.counts_on_cpu:
        machine.report(
            node,
            "step",
            "optimizer",
            [
                Operand(optimizer, CPU, optimizer.capturable, "capturable"),
                Operand(module, moves.module_place(module), node, "params"),
            ],
        )


def loaded(machine: Machine, optimizer: Optimizer) -> None:
    """`optimizer.load_state_dict(…)` brings the state to the parameters. Source: torch/optim/optimizer.py.

    All but the counts of steps: they stay where the file has them.
    """
    if optimizer.capturable is None:
        machine.memory.assign(optimizer, "counts_on_cpu", True)
    if optimizer.modules:
        machine.memory.assign(optimizer, "place", moves.module_place(optimizer.modules[0][0]))


def _replaced(optimizer: Optimizer) -> str | None:
    """The name of a parameter or child that the module has replaced since the optimizer was built."""
    for _, contents in optimizer.modules:
        for owner, name, value in contents:
            now = _now(owner, name)
            if now is value or now is None:
                continue
            if isinstance(now, Module) and isinstance(value, Module) and moves.has_parameters(now):
                return name if id(value) not in all_inside(now) else None
            if isinstance(now, Tensor) and now.kind == "parameter" and now.owner is None:
                return name
        known = {(id(owner), name) for owner, name, _ in contents}
        for _, _, value in contents:
            for name in _new_parameters(value):
                if (id(value), name) not in known:
                    return name
    return None


def _new_parameters(layer: Value) -> Iterator[str]:
    """The parameters of a layer of torch.nn that were assigned: those that it makes itself are no attributes here."""
    if isinstance(layer, Module) and layer.cls is None:
        for name in ("weight", "bias"):
            value = layer.attributes.get(name)
            if isinstance(value, Tensor) and value.kind == "parameter" and value.owner is None:
                yield name


def _now(owner: Module, name: str) -> Value | None:
    """What a module holds under a name of `_contents`."""
    if not name.endswith("]"):
        return owner.attributes.get(name)
    position = int(name.rpartition("[")[2][:-1])
    return owner.children[position] if position < len(owner.children) else None


def _rebuilt(machine: Machine, optimizer: Optimizer) -> str | None:
    trained = machine.backward.get("modules")
    if not isinstance(trained, Sequence) or not trained.items:
        return None
    held = {inner for module, _ in optimizer.modules for inner in all_inside(module)}
    covered = {inner for other in machine.optimizers for module, _ in other.modules for inner in all_inside(module)}
    # Of what another file's code made, only the call is known that led there, and it may have made several.
    made_by = {id(module.origin.node) for module, _ in optimizer.modules if not module.origin.foreign}
    modules = [module for module in trained.items if isinstance(module, Module)]
    for module in modules:
        rebuilt = id(module) not in covered and id(module.origin.node) in made_by
        if rebuilt and not any(id(other) in held and not machine.exclude(module, other) for other in modules):
            return module.name
    return None
