"""What an expression may evaluate to, as far as devices are concerned.

Values hold no behaviour: `attributes.py`, `calls.py` and the tables give them meaning. Whatever can change while the
program runs is changed through `Memory`, so that a branch can be undone.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from samedevice.linting.devices.places import Cell, Certainty, Location, resolve
from samedevice.texts import say

__all__ = [
    "NOTHING",
    "UNKNOWN",
    "Accelerator",
    "Class",
    "Constant",
    "Device",
    "Either",
    "External",
    "Function",
    "Generator",
    "Held",
    "Imported",
    "Instance",
    "Mapping",
    "Method",
    "Module",
    "Namespace",
    "Optimizer",
    "OptimizerState",
    "Origin",
    "Parameters",
    "Partial",
    "Role",
    "Scope",
    "Sequence",
    "Symbol",
    "Tensor",
    "Value",
]


class Value:
    """Anything. The bare class stands for "not known"."""

    __slots__ = ()


UNKNOWN = Value()
NOTHING = Value()
"""No value at all: what the other entries of a dict are like that has none."""

Scope = dict[str, Value]

Role = Literal["", "argument", "forward", "number", "part"]
"""What a symbol stands for: an argument, one of `forward`, one that is no tensor, or a part of a symbol."""


@dataclass(slots=True, eq=False)
class Constant(Value):
    """A Python constant: text, number, bool, None."""

    value: Any


@dataclass(slots=True, eq=False)
class Symbol(Value):
    """Something unknown that keeps its identity: a parameter of the function, an imported setting, a part of those."""

    name: str
    cell: Cell
    """Where it lives, should it be a tensor."""
    target: Cell
    """The device that it names, should it be one."""
    parts: Scope = field(default_factory=dict)
    role: Role = ""

    @classmethod
    def named(cls, name: str, role: Role = "") -> Symbol:
        """A symbol with fresh cells."""
        evidence = Certainty.CONVENTION if role == "forward" else Certainty.UNKNOWN
        return cls(
            name, Cell(say("the device of {name}", name=name), evidence), Cell(name, Certainty.CERTAIN), {}, role
        )

    def part(self, key: str, node: ast.AST | None = None) -> Value:
        """The value of an attribute or item of this one, always the same one for the same key.

        Args:
            key: what it is found by.
            node: the item as it is written, where `key` is not how a reader would say it.
        """
        found = self.parts.get(key)
        if found is None:
            said = f"[{ast.unparse(node)[:40]}]" if isinstance(node, ast.expr) else key
            found = self.parts[key] = Symbol.named(self.name + said, self._role_of_part(key))
        return found

    def _role_of_part(self, key: str) -> Role:
        if self.role == "number" or key in (".shape", ".ndim"):
            return "number"
        return "forward" if self.role == "forward" else "part"

    def treat_as_tensor(self) -> None:
        """Note that the code treats it as a tensor; what `forward` gets is then where the module is, by convention."""
        place = resolve(self.cell)
        if isinstance(place, Cell) and place.evidence is Certainty.CONVENTION:
            place.evidence = Certainty.TENSOR


@dataclass(slots=True, eq=False)
class Device(Value):
    """A torch.device, or the `.device` of something."""

    place: Location | None


@dataclass(slots=True, eq=False)
class Accelerator(Value):
    """An `accelerate.Accelerator`, and the device that it chose."""

    place: Location
    places: bool
    """Whether it moves what it prepares."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The expression that put a tensor where it is.

    `how` is "made" (a factory without a device), "made on" (with one), "traced" (with one that a trace wrote down),
    "moved", "loaded", "numpy", "module", "loader" or "unknown".
    """

    node: ast.AST
    how: str
    function: str = ""
    cls: str = ""
    literal: bool = False
    """The device was written down as a constant there: "cuda:0", `.cuda()`."""
    foreign: bool = False
    """Code of another file did it; `node` is what led there."""


@dataclass(frozen=True, slots=True)
class Held:
    """What keeps a tensor or module: the assignment that stored it, and in what."""

    kind: Literal["attribute", "container", "global", "cache", "argument"]
    owner: str
    """The class, for attributes."""
    name: str
    node: ast.AST
    in_module: bool = False
    """The owner is an nn.Module."""
    function: str = ""
    movable: bool = False
    """The owner has a `to` of its own."""
    accumulates: bool = False
    """The owner takes in values from call to call, as a metric does."""
    foreign: bool = False
    """Code of another file keeps it; `node` is what led there."""


@dataclass(slots=True, eq=False)
class Tensor(Value):
    """A tensor (or, with `certain=False`, something moved that may also be a module or a batch)."""

    place: Location | None
    origin: Origin | None = None
    scalar: bool | None = None
    """Has no dimensions: may join tensors of other devices in arithmetic. None where not known."""
    kind: Literal["plain", "parameter", "buffer"] = "plain"
    held: Held | None = None
    owner: Module | None = None
    """For a parameter that is read from a built-in module: the module whose place is its own."""
    requires_grad: bool = False
    leaf: bool = True
    certain: bool = True
    sources: frozenset[Module] = frozenset()
    """The modules whose parameters it was computed with."""
    part_of: Tensor | None = None
    """The batch that it was taken out of."""
    copied: bool = False
    """Copied from a parameter, as it was then."""
    lost_leaf: bool = False
    """The moved copy of a leaf that requires gradients."""


@dataclass(slots=True, eq=False)
class Module(Value):
    """An nn.Module: of torch.nn (`cls` None) or of a class in this file."""

    name: str
    cls: Class | None
    attributes: Scope
    place: Location | None
    """Where the parameters of a built-in module are."""
    origin: Origin
    held: Held | None = None
    children: list[Value] = field(default_factory=list)
    """For Sequential, ModuleList and ModuleDict; shared by what is known of all of them."""
    hooks: tuple[Value, ...] = ()
    """Forward hooks."""
    pre_hooks: tuple[Value, ...] = ()
    moved: bool = False
    moved_at: ast.AST | None = None
    copied: bool = False
    """Made by copying another module."""
    symbolic: bool = False
    external: bool = False
    """Of a class that is not seen here."""
    traced: Location | None = None
    """Where `torch.jit.trace` was run: devices that its `forward` asks for were written down then."""


@dataclass(slots=True, eq=False)
class Instance(Value):
    """An object of a class in this file, or a namespace (`cls` None)."""

    cls: Class | None
    attributes: Scope
    open: bool = False
    """May have attributes that are not known."""


@dataclass(slots=True, eq=False)
class Class(Value):
    """A class of this file."""

    node: ast.ClassDef
    bases: tuple[Value, ...]
    namespace: Scope
    scopes: tuple[Scope, ...]
    is_module: bool
    opaque: bool
    """A base class is not known."""


@dataclass(slots=True, eq=False)
class Function(Value):
    """A function or lambda of this file, bound to its receiver where it is a method."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scopes: tuple[Scope, ...]
    receiver: Value | None = None
    cls: Class | None = None
    binding: Literal["plain", "static", "class", "property"] = "plain"
    followed: bool = True
    """False where a decorator that is not known may change what a call does."""


@dataclass(slots=True, eq=False)
class Partial(Value):
    """`functools.partial(function, …)`."""

    function: Value
    arguments: Any


@dataclass(slots=True, eq=False)
class External(Value):
    """Something imported, by its full dotted name: "torch.nn.functional.relu"."""

    name: str


@dataclass(slots=True, eq=False)
class Imported(Value):
    """A name of another file, which is looked up there when it is first used."""

    file: Path
    name: str
    """Empty for the module itself."""
    node: ast.AST
    """The import."""
    fallback: External
    """What it is where the other file does not tell."""
    found: Value | None = None


@dataclass(slots=True, eq=False)
class Namespace(Value):
    """A module of another file."""

    name: str
    file: Path
    scope: Scope


@dataclass(slots=True, eq=False)
class Method(Value):
    """A method of a value that is not of this file: `tensor.to`, `optimizer.step`."""

    receiver: Value
    name: str


@dataclass(slots=True, eq=False)
class Sequence(Value):
    """A list, tuple, set or iterator: its items where all are known, and what each of them is like."""

    items: tuple[Value, ...] | None
    element: Value = UNKNOWN
    held: Held | None = None
    node: ast.AST | None = None
    mutable: bool = True
    apart: tuple[Tensor, Tensor] | None = None
    """Two items that are on different devices, where `items` is not known."""
    loops: int = 0
    """How many loops were being run where it was made: in those of their rounds, appending to it is counted."""


@dataclass(slots=True, eq=False)
class Mapping(Value):
    """A dict: the entries known by key, and what the others are like."""

    entries: dict[Any, Value]
    element: Value = NOTHING
    held: Held | None = None
    node: ast.AST | None = None
    cls: Class | None = None
    attributes: Scope = field(default_factory=dict)
    apart: tuple[Tensor, Tensor] | None = None
    """Two entries, an earlier and a later one, that are on different devices."""
    lists: bool = False
    """A defaultdict(list): each key has a list of its own."""
    optimizer: Optimizer | None = None
    """For one of `optimizer.param_groups`: whose it is."""


@dataclass(slots=True, eq=False)
class Parameters(Value):
    """`module.parameters()`: all parameters of a module."""

    module: Value


@dataclass(slots=True, eq=False)
class Optimizer(Value):
    """A torch.optim optimizer and what it was given."""

    name: str
    node: ast.AST
    modules: tuple[tuple[Module, tuple[tuple[Module, str, Value], ...]], ...]
    """Each module whose parameters it holds, and the parameters and children that the module had then."""
    params: Value
    function: str = ""
    """Where it was built."""
    place: Location | None = None
    """Where its state is, once it has some."""
    has_state: bool = True
    state_node: ast.AST | None = None
    """What moved the state, where something did."""
    counts_on_cpu: bool = False
    """Has counted steps, or loaded how many there were, on the CPU."""
    capturable: ast.AST | None = None
    """What asked for the counts to be on the device: at birth, or later."""


@dataclass(slots=True, eq=False)
class OptimizerState(Value):
    """`optimizer.state`, or what it holds for one parameter."""

    optimizer: Optimizer
    place: Location | None
    """Where the state was when the program began to go through it."""
    one: bool = False
    """For one parameter: a dict of tensors."""


@dataclass(slots=True, eq=False)
class Generator(Value):
    """A torch.Generator."""

    place: Location | None
    origin: Origin


@dataclass(slots=True, eq=False)
class Either(Value):
    """One of several modules, after branches that differ."""

    options: tuple[Module, ...]
