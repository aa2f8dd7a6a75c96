"""Functions and classes of torch that are called by name."""

from __future__ import annotations

import ast
from collections.abc import Callable

from samedevice.linting.devices import (
    checkpoints,
    factories,
    iterables,
    library_functions,
    loaders,
    modules,
    moves,
    operations,
    optimizers,
    packing,
    tracing,
    truth,
)
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.lattice import as_place, is_given
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.method_tables import ACCELERATORS
from samedevice.linting.devices.operation_tables import ELEMENTWISE, FACTORIES, LIKE, STRICT
from samedevice.linting.devices.places import CPU, CUDA, Place
from samedevice.linting.devices.sequences import part_of
from samedevice.linting.devices.tensor_methods import scalar_after
from samedevice.linting.devices.values import (
    UNKNOWN,
    Constant,
    Device,
    External,
    Function,
    Module,
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
        return modules.construct(machine, last, arguments, node)
    if parent.startswith("torch.optim") and last[:1].isupper():
        return optimizers.construct(machine, parent, last, arguments, node)
    if parent.startswith("torch.distributions"):
        return _distribution(machine, arguments, node)
    if parent in ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft"):
        return _function(machine, last, arguments, node)
    if parent.startswith("torch.nn.utils.rnn"):
        return packing.sequence_function(machine, last, arguments, node)
    if not parent.startswith(("torch.nn.", "torch.utils.", "torch.testing")):
        # torch.distributed, torch.ao and others may move what they are given.
        for value, _, _ in arguments.all():
            moves.escape(machine, value)
    return UNKNOWN


def _function(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    if name in FACTORIES:
        return factories.factory(machine, name, arguments, node)
    if name in LIKE:
        return factories.like(machine, arguments, node)
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


def _true(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return Constant(True)


def _first(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return arguments.positional[0] if arguments.positional else UNKNOWN


def _is_tensor(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    known = truth.is_instance(machine, value, External("torch.Tensor"))
    return UNKNOWN if known is None else Constant(known)


def _set_default(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    given = arguments.get(0, "device")
    machine.default_place = as_place(given) if is_given(given) else CPU
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


def _checkpoint(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """torch.utils.checkpoint.checkpoint(function, *args): calls the function."""
    if not arguments.positional or not isinstance(arguments.positional[0], Function | Module):
        return UNKNOWN
    rest = Arguments(arguments.positional[1:], arguments.nodes[1:])
    return machine.call(arguments.positional[0], rest, node)


def _device_count(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return machine.symbol(iterables.DEVICE_COUNT)


def _in_device(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`with torch.cuda.device(…)` and its kin: what "cuda" means inside is not followed."""
    machine.facts.current_index = None
    return UNKNOWN


def _spawn(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.multiprocessing.spawn(f, args, nprocs)` calls f(rank, *args)."""
    given = arguments.get(1, "args")
    items = list(given.items) if isinstance(given, Sequence) and given.items is not None else []
    rank = Symbol.named("rank", "number")
    if arguments.positional:
        machine.call(arguments.positional[0], Arguments([rank, *items], [node] * (1 + len(items))), node)
    return UNKNOWN


def _set_rng_state(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """Source: torch/random.py and aten/src/ATen/Context: the state must be a ByteTensor on the CPU."""
    state = arguments.get(0, "new_state")
    if isinstance(state, Tensor):
        operands = [
            Operand(state, moves.place_of(state), arguments.node(0, "new_state", node), "new_state"),
            Operand(UNKNOWN, CPU, node),
        ]
        if operations.may_conflict(operands):
            machine.report(node, "set_rng_state", "strict", operands)
    return UNKNOWN


def _legacy(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.FloatTensor(…)`: on the CPU whatever the default device is."""
    return Tensor(CPU, machine.origin(node, "made"), None if len(arguments.positional) == 1 else False)


def _legacy_cuda(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return Tensor(CUDA, machine.origin(node, "made on", literal=True), None)


def _split(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`random_split(dataset, …)` and `Subset(dataset, …)`."""
    return arguments.positional[0] if arguments.positional else UNKNOWN


def _random_split(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    loaders.check_generator(machine, arguments, node)
    return Sequence(None, _split(machine, arguments, node))


def _sampler(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    loaders.check_generator(machine, arguments, node)
    return UNKNOWN


_KINDS = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Byte", "Bool", "Char")

_OF_KINDS: dict[str, Handler] = {
    "set_rng_state": _set_rng_state,
    "random.set_rng_state": _set_rng_state,
    "set_device": _set_current,
    "current_device": _current,
    "device_count": _device_count,
    "device": _in_device,
}
"""Functions that `torch.cuda` has, and the module of each other kind of device."""

_EXACT: dict[str, Handler] = {
    "torch.device": _device,
    "torch.set_rng_state": _set_rng_state,
    "torch.random.set_rng_state": _set_rng_state,
    "torch.Generator": factories.generator,
    "torch.as_tensor": factories.as_tensor,
    "torch.asarray": factories.as_tensor,
    "torch.from_numpy": factories.from_numpy,
    "torch.frombuffer": factories.from_numpy,
    "torch.load": checkpoints.load,
    "torch.save": checkpoints.save,
    "torch.is_tensor": _is_tensor,
    "torch.cuda.is_available": _true,
    "torch.accelerator.is_available": _true,
    "torch.accelerator.current_accelerator": _accelerator,
    "torch.set_default_device": _set_default,
    "torch.set_default_tensor_type": _unset_default,
    **{f"torch.{kind}.{name}": handler for kind in ACCELERATORS for name, handler in _OF_KINDS.items()},
    "torch.multiprocessing.spawn": _spawn,
    "torch.multiprocessing.Process": library_functions.started,
    "torch.utils.data.random_split": _random_split,
    "torch.utils.data.RandomSampler": _sampler,
    "torch.utils.data.SubsetRandomSampler": _sampler,
    "torch.utils.data.WeightedRandomSampler": _sampler,
    "torch.utils.data.Subset": _split,
    "torch.autograd.Variable": _first,
    "torch.Tensor": _legacy,
    **{f"torch.{kind}Tensor": _legacy for kind in _KINDS},
    **{f"torch.cuda.{kind}Tensor": _legacy_cuda for kind in _KINDS},
    "torch.compile": _first,
    "torch.jit.script": _first,
    "torch.jit.trace": tracing.trace,
    "torch.jit.save": tracing.save,
    "torch.jit.load": tracing.load,
    "torch.nn.Parameter": factories.parameter,
    "torch.nn.parameter.Parameter": factories.parameter,
    "torch.nn.Buffer": factories.buffer,
    "torch.nn.parameter.Buffer": factories.buffer,
    "torch.nn.DataParallel": modules.data_parallel,
    "torch.nn.parallel.DataParallel": modules.data_parallel,
    "torch.nn.parallel.DistributedDataParallel": modules.distributed,
    "torch.nn.parallel.distributed.DistributedDataParallel": modules.distributed,
    "torch.utils.data.DataLoader": loaders.loader,
    "torch.utils.data.dataloader.DataLoader": loaders.loader,
    "torch.utils.data.TensorDataset": _dataset,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
}
