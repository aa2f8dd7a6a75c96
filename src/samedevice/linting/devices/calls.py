"""Calls: evaluating arguments, following functions and classes of the file, and handing the rest to the tables."""

from __future__ import annotations

import ast
import re

from samedevice.linting.devices import (
    accelerate,
    attributes,
    branches,
    command_line,
    container_methods,
    left_out,
    library_functions,
    method_tables,
    module_calls,
    module_methods,
    modules,
    moves,
    operations,
    optimizers,
    tensor_methods,
    torch_functions,
)
from samedevice.linting.devices import arguments as passing
from samedevice.linting.devices.facts import MoveDiscarded, Operand
from samedevice.linting.devices.lattice import join_all
from samedevice.linting.devices.machine import Arguments, Frame, Machine
from samedevice.linting.devices.places import CPU, Cell, Certainty, Location, difference, resolve
from samedevice.linting.devices.values import (
    UNKNOWN,
    Accelerator,
    Class,
    Constant,
    Either,
    External,
    Function,
    Instance,
    Mapping,
    Method,
    Module,
    Optimizer,
    Partial,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["call", "discarded", "evaluate_call", "nested_frame", "run_function"]


def evaluate_call(machine: Machine, node: ast.Call) -> Value:
    """The value of a call expression."""
    if isinstance(node.func, ast.Name) and node.func.id == "super":
        return _super(machine)
    callee = machine.evaluate(node.func)
    return call(machine, callee, passing.evaluate(machine, node), node)


def call(machine: Machine, callee: Value, arguments: Arguments, node: ast.AST) -> Value:
    """What calling `callee` with `arguments` gives."""
    if isinstance(callee, Function):
        return _call_function(machine, callee, arguments, node)
    if isinstance(callee, Class):
        return _construct(machine, callee, arguments, node)
    if isinstance(callee, Module | Either):
        return module_calls.call(machine, callee, arguments, node)
    if isinstance(callee, External):
        return _call_external(machine, callee.name, arguments, node)
    if isinstance(callee, Method):
        return _call_method(machine, callee, arguments, node)
    if isinstance(callee, Partial):
        return call(machine, callee.function, passing.completed(callee.arguments, arguments), node)
    if isinstance(callee, Instance) and callee.cls is not None:
        method = attributes.find(callee.cls, "__call__")
        if method is not None and isinstance(method[0], Function):
            return call(machine, attributes.read(machine, callee, "__call__", node), arguments, node)
    if isinstance(callee, Tensor) and not callee.certain:
        return module_calls.call_moved(machine, callee, arguments, node)
    if isinstance(callee, module_methods.Mover):
        return module_methods.apply_mover(machine, callee, arguments, node)
    if isinstance(callee, Symbol):
        return _call_symbol(machine, callee, arguments, node)
    return _call_unknown(machine, arguments, node)


def _call_unknown(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """A call of something that is not seen: a GradScaler's methods are told by name, a module may be moved by it."""
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    kind = arguments.keywords.get("return_tensors")
    if isinstance(kind, Constant) and kind.value == "pt":
        # Hugging Face's tokenizers and processors make their tensors on the CPU.
        return Tensor(CPU, machine.origin(node, "made"), False, certain=False)
    first = arguments.positional[0] if arguments.positional else UNKNOWN
    if name == "step" and isinstance(first, Optimizer):
        optimizers.step_scaled(machine, first, node)
    elif name == "backward":
        optimizers.note_backward(machine, None)
    elif name == "scale" and isinstance(first, Tensor) and len(arguments.positional) == 1:
        return first
    else:
        for value, _, _ in arguments.all():
            moves.escape(machine, value)
    return UNKNOWN


def _call_symbol(machine: Machine, callee: Symbol, arguments: Arguments, node: ast.AST) -> Value:
    """A method of something unknown: only moves mean something."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return UNKNOWN
    receiver = machine.evaluate(node.func.value)
    if isinstance(receiver, Symbol) and receiver.role == "number":
        return receiver
    if node.func.attr in method_tables.NO_TENSOR:
        return Symbol.named(node.func.attr, "number")
    if isinstance(receiver, Symbol) and node.func.attr in (*method_tables.MEANINGFUL_ON_UNKNOWN, "numpy"):
        tensor = Tensor(receiver.cell, certain=False, leaf=False)
        return tensor_methods.call(machine, tensor, node.func.attr, arguments, node)
    return UNKNOWN


def _call_method(machine: Machine, method: Method, arguments: Arguments, node: ast.AST) -> Value:
    receiver = method.receiver
    if isinstance(receiver, Class) and method.name == "apply":
        return _apply_autograd(machine, receiver, arguments, node)
    if isinstance(receiver, Method) and receiver.name.startswith("super:") and machine.frame.cls is not None:
        return _call_super(machine, receiver.receiver, machine.frame.cls, method.name, arguments, node)
    if isinstance(receiver, Accelerator):
        return accelerate.method(machine, receiver, method.name, arguments, node)
    if isinstance(receiver, command_line.Parser):
        return command_line.method(machine, receiver, method.name, arguments, node)
    if isinstance(receiver, Tensor):
        return tensor_methods.call(machine, receiver, method.name, arguments, node)
    if isinstance(receiver, Module | Either):
        return module_methods.call_method(machine, receiver, method.name, arguments, node)
    return container_methods.call(machine, receiver, method.name, arguments, node)


def _apply_autograd(machine: Machine, cls: Class, arguments: Arguments, node: ast.AST) -> Value:
    """`Function.apply(…)`: its forward, and its backward for gradients where the results are.

    Source: torch/csrc/autograd/engine.cpp, validate_outputs: a gradient must be where its input is.
    """
    forward, backward = attributes.find(cls, "forward"), attributes.find(cls, "backward")
    if forward is None or backward is None:
        return UNKNOWN
    context = Instance(None, {}, open=True)
    given = Arguments([context, *arguments.positional], [node, *arguments.nodes])
    result = call(machine, forward[0], given, node)
    if isinstance(result, Tensor):
        gradients = call(machine, backward[0], Arguments([context, result], [node, node]), node)
        _check_gradients(machine, gradients, arguments, _second_parameter(backward[0]))
    return result


def _second_parameter(function: Value) -> str:
    """What `backward(ctx, grad)` calls the gradient that it gets."""
    given = function.node.args.args if isinstance(function, Function) else []
    return given[1].arg if len(given) > 1 else ""


def _check_gradients(machine: Machine, gradients: Value, arguments: Arguments, received: str) -> None:
    found = gradients.items if isinstance(gradients, Sequence) and gradients.items is not None else (gradients,)
    for gradient, value, part in zip(found, arguments.positional, arguments.nodes, strict=False):
        if isinstance(gradient, Tensor) and isinstance(value, Tensor):
            operands = [
                Operand(gradient, moves.place_of(gradient), gradient.origin.node if gradient.origin else part, "grad"),
                Operand(value, moves.place_of(value), part, received),
            ]
            if operations.may_conflict(operands):
                machine.report(operands[0].node, "backward", "gradient", operands)


def _call_external(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    if name.startswith("torch."):
        return torch_functions.call(machine, name, arguments, node)
    return library_functions.call(machine, name, arguments, node)


def _super(machine: Machine) -> Value:
    """`super()`: the receiver, seen as an instance of its first base class."""
    frame = machine.frame
    if frame.cls is None or frame.receiver is None:
        return UNKNOWN
    return Method(frame.receiver, f"super:{frame.cls.node.name}")


def _call_super(machine: Machine, receiver: Value, cls: Class, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """`super().name(…)`."""
    for base in cls.bases:
        found = attributes.find(base, name) if isinstance(base, Class) else None
        if found is not None and isinstance(found[0], Function):
            function, owner = found
            return _call_function(machine, _rebound(function, receiver, owner), arguments, node)
    if isinstance(receiver, Module):
        return module_methods.call_method(machine, receiver, name, arguments, node)
    if isinstance(receiver, Mapping):
        return container_methods.call(machine, receiver, name, arguments, node)
    return UNKNOWN


def _rebound(function: Value, receiver: Value, owner: Class) -> Function:
    assert isinstance(function, Function)
    return Function(function.node, function.scopes, receiver, owner, function.binding, function.followed)


def nested_frame(machine: Machine) -> Frame:
    """A frame with names of its own inside the current one, for a comprehension."""
    outer = machine.frame
    frame = Frame(({}, *outer.scopes), outer.name, outer.node, outer.cls, outer.receiver)
    frame.yields, frame.nested = outer.yields, True
    return frame


def _call_function(machine: Machine, function: Function, arguments: Arguments, node: ast.AST) -> Value:
    if isinstance(function.receiver, Class) and isinstance(function.node, ast.Lambda):
        return UNKNOWN
    followed = function.followed and machine.may_follow(function) and machine.spend(1)
    if not followed or not machine.may_enter(function):
        for value, _, _ in arguments.all():
            moves.escape(machine, value)
        return UNKNOWN
    scope = passing.bind(machine, function, arguments)
    return run_function(machine, function, scope, node)


def run_function(machine: Machine, function: Function, scope: dict[str, Value], call_node: ast.AST | None) -> Value:
    """Interpret a function's body with its parameters bound in `scope`."""
    node = function.node
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    if function.cls is not None:
        name = f"{function.cls.node.name}.{name}"
    frame = Frame((scope, *function.scopes), name, node, function.cls, function.receiver, call_node)
    machine.visited.add(id(node))
    with machine.inside(frame):
        if isinstance(node, ast.Lambda):
            return machine.evaluate(node.body)
        ended = machine.execute(node.body)
        _check_returns(machine, frame)
    if frame.yields:
        return Sequence(None, join_all(frame.yields), node=call_node)
    if not frame.returns:
        return Constant(None)
    return join_all(frame.returns if ended else [*frame.returns, Constant(None)])


def _check_returns(machine: Machine, frame: Frame) -> None:
    """A function that returns a tensor on its argument's device, and on another path one that it made on the CPU."""
    tensors = [value for value in frame.returns if isinstance(value, Tensor)]
    for made in tensors:
        fresh = made.origin is not None and made.origin.how == "made" and made.origin.function == frame.name
        if not fresh or made.scalar is not False or made.place is not machine.default_place or made.held is not None:
            continue
        for other in tensors:
            if _is_of_items(moves.place_of(other)):
                continue  # An empty list has none that could tell a device.
            if difference(made.place, moves.place_of(other)) is Certainty.CERTAIN and made.origin is not None:
                operands = [
                    Operand(made, made.place, made.origin.node, "returned"),
                    Operand(other, moves.place_of(other), made.origin.node, "returned"),
                ]
                if frame.node is None or not _never_meet(machine, frame.node, made, other):
                    machine.report(made.origin.node, "return", "returns", operands)
                return


def _never_meet(machine: Machine, function: ast.AST, made: Tensor, other: Tensor) -> bool:
    """Whether two tensors that a function returns are told apart by more than the path that a call happens to take."""
    origins = [value.origin.node for value in (made, other) if value.origin is not None]
    return (
        branches.for_no_items(machine, function, origins[0])
        or branches.by_process_group(function, origins)
        or left_out.tells_the_device(function, origins[0], moves.place_of(other))
    )


def _is_of_items(place: Location | None) -> bool:
    """Where an item is of a list that is not known."""
    found = resolve(place) if place is not None else None
    return isinstance(found, Cell) and _ITEM.search(found.name) is not None


_ITEM = re.compile(r"\[(…|-?\d+)\]$")


def _construct(machine: Machine, cls: Class, arguments: Arguments, node: ast.AST) -> Value:
    if attributes.find(cls, "__new__") or not machine.spend(1):
        return UNKNOWN
    made = _blank(machine, cls, arguments, node)
    init = attributes.find(cls, "__init__")
    if init is not None and isinstance(init[0], Function):
        _call_function(machine, _rebound(init[0], made, init[1]), arguments, node)
    else:
        _assign_fields(machine, cls, made, arguments)
    return made


def _blank(machine: Machine, cls: Class, arguments: Arguments, node: ast.AST) -> Value:
    if cls.is_module:
        module = Module(cls.node.name, cls, {}, None, machine.origin(node, "module"))
        module.children = _container_children(machine, cls, arguments)
        return module
    bases = {base.name for base in _externals(cls)}
    if bases & _DICTS:
        return Mapping(dict(arguments.keywords), node=node, cls=cls)
    return Instance(cls, {}, open=cls.opaque)


def _container_children(machine: Machine, cls: Class, arguments: Arguments) -> list[Value]:
    if any(
        base.name in ("torch.nn.Sequential", "torch.nn.ModuleList") for base in _externals(cls)
    ) and not attributes.find(cls, "__init__"):
        return modules.children_from(machine, arguments)
    return []


_DICTS = frozenset({"builtins.dict", "collections.UserDict", "collections.OrderedDict", "collections.defaultdict"})


def _externals(cls: Class) -> list[External]:
    found = [base for base in cls.bases if isinstance(base, External)]
    for base in cls.bases:
        if isinstance(base, Class):
            found.extend(_externals(base))
    return found


def _assign_fields(machine: Machine, cls: Class, made: Value, arguments: Arguments) -> None:
    """The constructor of a dataclass or NamedTuple: its annotated names, in order."""
    if not isinstance(made, Instance | Module):
        return
    fields = _field_names(cls)
    for name, value in zip(fields, arguments.positional, strict=False):
        machine.memory.write(made.attributes, name, value)
    for name, value in arguments.keywords.items():
        if name in fields:
            machine.memory.write(made.attributes, name, value)


def _field_names(cls: Class) -> list[str]:
    """The annotated names of a class and its bases, bases first."""
    inherited = [name for base in reversed(cls.bases) if isinstance(base, Class) for name in _field_names(base)]
    own = [
        part.target.id
        for part in cls.node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    ]
    return [*inherited, *(name for name in own if name not in inherited)]


def discarded(machine: Machine, node: ast.Expr | ast.Assign, loop: ast.For | ast.AsyncFor | None = None) -> None:
    """Note a move whose result is dropped.

    Args:
        machine: the interpreter.
        node: a statement that is just an expression, or the assignment that is all that `loop` does.
        loop: a loop whose variable is all that gets the result.
    """
    inner = node.value
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Attribute):
        return
    if inner.func.attr not in ("to", "cpu", *method_tables.MOVES):
        return
    if inner.func.attr == "to" and not tensor_methods.names_device(inner):
        return
    receiver = machine.evaluate(inner.func.value)
    if isinstance(receiver, Tensor) and receiver.certain and receiver.kind != "parameter":
        machine.note(MoveDiscarded(node, inner.func.value, receiver, machine.where(), loop))
