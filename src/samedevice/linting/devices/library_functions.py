"""Functions of Python, numpy and other libraries, as far as they carry tensors or modules through."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from samedevice.linting.devices import accelerate, attributes, moves, operations, truth
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.lattice import join_all
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.places import CPU
from samedevice.linting.devices.sequences import element_of, item_of, sequence, unpack
from samedevice.linting.devices.values import (
    NOTHING,
    UNKNOWN,
    Constant,
    External,
    Instance,
    Mapping,
    Module,
    Parameters,
    Partial,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["DEVICE_COUNT", "Parser", "call", "parser_method", "started"]

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


def _list(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    if not arguments.positional:
        made = sequence([], node)
        made.loops = machine.loops
        return made
    value = arguments.positional[0]
    items = unpack(machine, value, node)
    if items is not None:
        return sequence(items, node)
    if isinstance(value, Mapping):
        return Sequence(None, node=node)
    return Sequence(None, element_of(machine, value, node), node=node)


def _dict(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    made = Mapping(dict(arguments.keywords), node=node)
    for value in arguments.positional:
        if isinstance(value, Mapping):
            made.entries.update(value.entries)
            made.element = value.element
        else:
            made.element = item_of(machine, element_of(machine, value, node), Constant(1), node)
    return made


def _defaultdict(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    factory = arguments.positional[0] if arguments.positional else UNKNOWN
    lists = isinstance(factory, External) and factory.name == "builtins.list"
    return Mapping({}, NOTHING if lists else UNKNOWN, node=node, lists=lists)


def _zip(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    columns = [unpack(machine, value, node) for value in arguments.positional]
    known = [column for column in columns if column is not None]
    if known and len(known) == len(columns) and len({len(column) for column in known}) == 1:
        return sequence([sequence(row, mutable=False) for row in zip(*known, strict=True)])
    if not arguments.complete:
        return _columns(arguments)
    return Sequence(None, sequence([element_of(machine, v, node) for v in arguments.positional], mutable=False))


def _columns(arguments: Arguments) -> Value:
    """`zip(*rows)`: one tuple a column."""
    rows = arguments.positional[0] if len(arguments.positional) == 1 else UNKNOWN
    if isinstance(rows, Sequence) and rows.items is not None:
        return sequence([Sequence(None, item, mutable=False) for item in rows.items])
    return UNKNOWN


def _enumerate(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    from_zero = len(arguments.positional) == 1 and not arguments.keywords
    items = unpack(machine, value, node) if from_zero else None
    if items is not None:
        return sequence([sequence([Constant(i), item], mutable=False) for i, item in enumerate(items)])
    return Sequence(None, sequence([UNKNOWN, element_of(machine, value, node)], mutable=False))


def _map(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    if len(arguments.positional) != 2:
        return UNKNOWN
    function, source = arguments.positional
    items = unpack(machine, source, node)
    if items is not None and len(items) <= 8:
        return sequence([machine.call(function, Arguments([item], [node]), node) for item in items])
    element = element_of(machine, source, node)
    return Sequence(None, machine.call(function, Arguments([element], [node]), node))


def _same_items(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    items = unpack(machine, value, node)
    return Sequence(items, element_of(machine, value, node))


def _reversed(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    items = unpack(machine, value, node)
    return sequence(items[::-1]) if items is not None else Sequence(None, element_of(machine, value, node))


def _first_item(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    if isinstance(value, Sequence) and value.items:
        return value.items[0]
    if isinstance(value, Parameters) and isinstance(value.module, Module):
        return _first_parameter(value.module) or element_of(machine, value, node)
    return element_of(machine, value, node)


def _first_parameter(module: Module) -> Tensor | None:
    """The parameter that `next(module.parameters())` gives, for its device."""
    if module.place is not None:
        return Tensor(None, module.origin, kind="parameter", owner=module, requires_grad=True)
    parts = list(moves.registered(module))
    own = next((part for part in parts if isinstance(part, Tensor) and part.kind == "parameter"), None)
    inner = (_first_parameter(part) for part in parts if isinstance(part, Module))
    return own or next((found for found in inner if found is not None), None)


def _sum(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    return element_of(machine, value, node)


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


def _deepcopy(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    if not arguments.positional:
        return UNKNOWN
    copy = _copied(arguments.positional[0], {})
    if isinstance(copy, Module):
        copy.origin, copy.copied = machine.origin(node, "module"), True
    return copy


def _copied(value: Value, memo: dict[int, Value]) -> Value:
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, Tensor):
        memo[id(value)] = replace(value, place=moves.place_of(value), owner=None)
    elif isinstance(value, Module):
        copy = replace(value, attributes={}, children=[], held=None, moved=False, moved_at=None)
        memo[id(value)] = copy
        copy.attributes = {
            name: _copied(part, memo) for name, part in value.attributes.items() if not _own(part, value)
        }
        copy.children = [_copied(part, memo) for part in value.children]
    elif isinstance(value, Instance):
        instance = memo[id(value)] = replace(value, attributes={})
        instance.attributes.update({name: _copied(part, memo) for name, part in value.attributes.items()})
    elif isinstance(value, Sequence):
        # Known before its items are: a list may hold itself.
        made = memo[id(value)] = Sequence(None, node=value.node)
        made.items = tuple(_copied(item, memo) for item in value.items) if value.items is not None else None
        made.element = _copied(value.element, memo) if made.items is None else join_all(made.items)
    else:
        memo[id(value)] = value
    return memo[id(value)]


def _own(part: Value, module: Module) -> bool:
    """A built-in module's parameter, which is read anew from the copy."""
    return isinstance(part, Tensor) and part.owner is module


def _namespace(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return Instance(None, dict(arguments.keywords), open=True)


def _parser(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return Parser({})


DEVICE_COUNT = "torch.cuda.device_count()"


class Parser(Value):
    """An argparse.ArgumentParser: the defaults that tell a device or its index."""

    __slots__ = ("defaults",)

    def __init__(self, defaults: dict[str, Value]) -> None:
        self.defaults = defaults


def parser_method(machine: Machine, parser: Parser, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """`parser.add_argument` and `parser.parse_args`."""
    if name == "add_argument":
        _add_argument(parser, arguments)
    elif name in ("parse_args", "parse_known_args"):
        made = Instance(None, dict(parser.defaults), open=True)
        return made if name == "parse_args" else sequence([made, UNKNOWN], mutable=False)
    elif name in ("add_argument_group", "add_mutually_exclusive_group"):
        return parser
    return UNKNOWN


def _add_argument(parser: Parser, arguments: Arguments) -> None:
    names = [
        value.value for value in arguments.positional if isinstance(value, Constant) and isinstance(value.value, str)
    ]
    destination = arguments.keywords.get("dest")
    if isinstance(destination, Constant) and isinstance(destination.value, str):
        name = destination.value
    elif names:
        name = max(names, key=lambda text: text.startswith("--")).lstrip("-").replace("-", "_")
    else:
        return
    default = arguments.keywords.get("default")
    if default is not None and "action" not in arguments.keywords:
        parser.defaults[name] = default


def _range(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    only = arguments.positional[0] if len(arguments.positional) == 1 else UNKNOWN
    if isinstance(only, Symbol) and only.name == DEVICE_COUNT:
        # A program that counts its devices is meant for more than one.
        return sequence([Constant(0), Constant(1)])
    values = [
        value.value for value in arguments.positional if isinstance(value, Constant) and isinstance(value.value, int)
    ]
    if len(values) == len(arguments.positional) and 0 < len(values) <= 2 and 0 <= len(range(*values)) <= 4:
        return sequence([Constant(number) for number in range(*values)])
    return Sequence(None)


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


def _choice(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return element_of(machine, arguments.positional[0], node) if arguments.positional else UNKNOWN


def _choices(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return Sequence(None, _choice(machine, arguments, node))


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
    "builtins.list": _list,
    "builtins.tuple": _list,
    "builtins.set": _list,
    "builtins.dict": _dict,
    "builtins.zip": _zip,
    "builtins.enumerate": _enumerate,
    "builtins.map": _map,
    "builtins.iter": _same_items,
    "builtins.sorted": _same_items,
    "builtins.reversed": _reversed,
    "builtins.next": _first_item,
    "builtins.sum": _sum,
    "builtins.isinstance": _is_instance,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.vars": _all_attributes,
    "builtins.dir": _all_attributes,
    "builtins.range": _range,
    "builtins.len": _len,
    "builtins.str": _text,
    "builtins.int": _number,
    "random.choice": _choice,
    "random.choices": _choices,
    "random.sample": _choices,
    "threading.Thread": started,
    "multiprocessing.Process": started,
    "collections.OrderedDict": _dict,
    "collections.defaultdict": _defaultdict,
    "collections.deque": _list,
    "copy.deepcopy": _deepcopy,
    "copy.copy": _deepcopy,
    "functools.partial": _partial,
    "types.SimpleNamespace": _namespace,
    "argparse.Namespace": _namespace,
    "argparse.ArgumentParser": _parser,
    "accelerate.Accelerator": accelerate.made,
    "accelerate.accelerator.Accelerator": accelerate.made,
    "tqdm.tqdm": _same_items,
    "tqdm.auto.tqdm": _same_items,
    "tqdm.notebook.tqdm": _same_items,
    "os.environ.get": _setting,
    "os.getenv": _setting,
}
