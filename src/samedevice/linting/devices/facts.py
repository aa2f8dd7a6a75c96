"""What the interpreter has seen: the facts that rules read."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from samedevice.linting.devices.places import CPU, Certainty, Location, difference, resolve
from samedevice.linting.devices.values import UNKNOWN, Module, Optimizer, Tensor, Value

__all__ = [
    "Conflict",
    "Fact",
    "Facts",
    "LostLeaf",
    "MoveDiscarded",
    "Operand",
    "ScalerWithoutGradients",
    "StaleParameters",
    "WeightUntied",
    "Where",
]


@dataclass(frozen=True, slots=True)
class Where:
    """The function that was being interpreted."""

    function: str
    """Qualified name; empty at module level."""
    cls: str
    node: ast.AST | None
    in_module: bool
    """A method of an nn.Module."""
    devices: tuple[tuple[str, Location], ...] = ()
    """Expressions that name a device in the function, and which."""
    outer_devices: tuple[tuple[str, Location], ...] = ()
    """The same for names from outside it."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor, module or generator that took part in an operation, and where it was at that moment."""

    value: Value
    place: Location | None
    node: ast.AST
    argument: str = ""
    inside: bool = False
    """Belongs to code of another file: what is wrong with it is that file's affair."""
    unmoved: bool = False
    """An item of a dict of which nothing has left the CPU."""
    model: Module | None = None
    """The model that was called and never moved, where `value` is one of its layers."""
    whole: Module | None = None
    """The Sequential that `node` names, where `value` is one of its layers."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """An operation whose operands are on different devices."""

    node: ast.AST
    operation: str
    role: str
    """elementwise, inplace, strict, module, hidden, criterion, index, value, generator, numpy, lengths or gradient."""
    culprit: Operand
    other: Operand
    certainty: Certainty
    where: Where
    path: tuple[ast.AST, ...] = ()
    """The calls that led there, outermost first."""
    caller: Where | None = None
    """Where the model was called whose `forward` led there."""
    operands: tuple[Operand, ...] = ()
    """All that took part, those two among them."""


@dataclass(frozen=True, slots=True)
class MoveDiscarded:
    """`tensor.to(device)` whose result nobody uses, or that only the variable of a loop gets."""

    node: ast.Expr | ast.Assign
    target: ast.AST
    tensor: Tensor
    where: Where
    loop: ast.For | ast.AsyncFor | None = None
    """The loop whose variable gets the result."""


@dataclass(frozen=True, slots=True)
class LostLeaf:
    """A leaf that requires gradients was moved, and the copy is used as if it were the leaf."""

    node: ast.AST
    use: str
    """parameter or optimizer."""
    tensor: Tensor
    where: Where


@dataclass(frozen=True, slots=True)
class WeightUntied:
    """`nn.Embedding(…, _weight=other.weight)`: a second Parameter over the same storage, which a move takes apart."""

    node: ast.AST
    weight: ast.AST
    where: Where


@dataclass(frozen=True, slots=True)
class StaleParameters:
    """An optimizer that steps while the module it was built for has other parameters by now."""

    node: ast.AST
    optimizer: Optimizer
    name: str
    where: Where


@dataclass(frozen=True, slots=True)
class ScalerWithoutGradients:
    """`scaler.step(optimizer)` where no backward pass reached the optimizer's parameters."""

    node: ast.AST
    optimizer: Optimizer
    where: Where


Fact = Conflict | MoveDiscarded | LostLeaf | ScalerWithoutGradients | StaleParameters | WeightUntied


@dataclass(slots=True)
class _Pending:
    node: ast.AST
    operation: str
    role: str
    operands: tuple[Operand, ...]
    where: Where
    path: tuple[ast.AST, ...]
    caller: Where | None


@dataclass(slots=True)
class Facts:
    """Facts in the order seen, each place once. Operations are judged at the end, when all places are linked."""

    current_index: int | None = 0
    """What "cuda" without an index stands for; None where the program sets it."""
    _seen: dict[tuple[str, int, str], Fact | _Pending] = field(default_factory=dict)

    def add(self, fact: Fact) -> None:
        """Keep a fact, unless there is one of that kind for that place."""
        self._seen.setdefault((type(fact).__name__, id(fact.node), ""), fact)

    def operation(
        self,
        node: ast.AST,
        operation: str,
        role: str,
        operands: tuple[Operand, ...],
        where: Where,
        path: tuple[ast.AST, ...],
        caller: Where | None = None,
    ) -> None:
        """Keep an operation whose operands may turn out to be on different devices."""
        key = ("operation", id(node), role)
        known = self._seen.get(key)
        pending = _Pending(node, operation, role, operands, where, path, caller)
        if known is None or (isinstance(known, _Pending) and _judge(known, self.current_index) is None):
            self._seen[key] = pending

    def settle(self) -> list[Fact]:
        """All facts, operations judged."""
        facts: list[Fact] = []
        for kept in self._seen.values():
            fact = _judge(kept, self.current_index) if isinstance(kept, _Pending) else kept
            if fact is not None:
                facts.append(fact)
        return facts


def _judge(pending: _Pending, current_index: int | None) -> Conflict | None:
    best: tuple[Certainty, Operand, Operand] | None = None
    operands = pending.operands
    for position, first in enumerate(operands):
        for second in operands[position + 1 :]:
            certainty = difference(first.place, second.place, current_index=current_index)
            if certainty and (best is None or certainty > best[0]):
                best = (certainty, first, second)
    if best is None:
        return None
    certainty, first, second = best
    culprit, other = (first, second) if _to_blame(first, second, operands) else (second, first)
    if culprit.value is UNKNOWN:
        # A demand of the operation itself, such as numpy's for the CPU.
        culprit, other = other, culprit
    if culprit.inside:
        return None
    return Conflict(
        pending.node,
        pending.operation,
        pending.role,
        culprit,
        other,
        certainty,
        pending.where,
        pending.path,
        pending.caller,
        operands,
    )


def _to_blame(first: Operand, second: Operand, operands: tuple[Operand, ...]) -> bool:
    """Whether `first` rather than `second` is in the wrong place."""
    mine, theirs = _suspicion(first, second), _suspicion(second, first)
    if mine != theirs:
        return mine > theirs
    with_first = sum(1 for operand in operands if _same(operand.place, first.place))
    with_second = sum(1 for operand in operands if _same(operand.place, second.place))
    if with_first != with_second:
        return with_first < with_second
    return _is_current(first.place) or not _is_current(second.place)


def _suspicion(operand: Operand, other: Operand) -> int:
    """How much speaks for an operand being in the wrong place: where the program put it on purpose, nothing does."""
    origin = getattr(operand.value, "origin", None)
    if origin is not None and origin.how == "loaded":
        return 4
    if _is_cpu(operand.place):
        return 1 if _is_placed(operand) and _is_hardcoded(other) else 3
    return 2 if _is_hardcoded(operand) else 0


def _is_hardcoded(operand: Operand) -> bool:
    """Moved to an accelerator that is written down as a constant."""
    origin = getattr(operand.value, "origin", None)
    return origin is not None and origin.literal and not _is_cpu(operand.place)


def _is_placed(operand: Operand) -> bool:
    """Moved on purpose to a device that the program chooses, and not kept from an earlier call."""
    moved_at = getattr(operand.value, "moved_at", None)
    if moved_at is not None:
        return not _names_constant(moved_at)
    origin = getattr(operand.value, "origin", None)
    kept = getattr(operand.value, "held", None)
    return kept is None and origin is not None and origin.how in ("moved", "made on") and not origin.literal


def _names_constant(call: ast.AST) -> bool:
    """`.cpu()`, `.to("cpu")`."""
    return isinstance(call, ast.Call) and all(isinstance(part, ast.Constant) for part in call.args)


def _is_cpu(place: Location | None) -> bool:
    return place is not None and resolve(place) == CPU


def _same(a: Location | None, b: Location | None) -> bool:
    return a is not None and b is not None and (resolve(a) is resolve(b) or resolve(a) == resolve(b))


def _is_current(place: Location | None) -> bool:
    """On the default accelerator, where tensors go that nobody placed."""
    place = resolve(place) if place is not None else None
    return getattr(place, "index", 1) in (None, 0)
