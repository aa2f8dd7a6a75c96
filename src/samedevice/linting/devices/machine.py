"""The interpreter's state: frames, memory, facts and a budget, and the dispatch on kinds of syntax.

What each kind of syntax and each call means stands in the other modules; they get the machine as their first argument.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from samedevice.linting.devices import borders
from samedevice.linting.devices.facts import Fact, Facts, Operand, Where
from samedevice.linting.devices.frames import Arguments, Frame
from samedevice.linting.devices.lattice import as_place
from samedevice.linting.devices.memory import Memory
from samedevice.linting.devices.neighbours import Neighbours
from samedevice.linting.devices.places import CPU, Location
from samedevice.linting.devices.values import (
    UNKNOWN,
    Class,
    Constant,
    Device,
    Function,
    Held,
    Imported,
    Instance,
    Mapping,
    Module,
    Namespace,
    Optimizer,
    Origin,
    Scope,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["Arguments", "Frame", "Machine"]

_DEEPEST_CALL = 14
_DEEPEST_EXPRESSION = 180


class Machine:
    """Interprets one file."""

    def __init__(
        self, table: dict[type[ast.AST], Callable[..., Any]], call: Callable[..., Value], budget: int, foreign: int
    ) -> None:
        self.table = table
        self._call = call
        self.memory = Memory()
        self.facts = Facts()
        self.frames: list[Frame] = []
        self.default_place: Location | None = CPU
        self.globals: Scope = {}
        """The names of the file itself; code with other names at its bottom is another file's."""
        self.neighbours: Neighbours | None = None
        """Finds the files that are imported; None where nothing is known beside the text."""
        self.files: dict[int, Path] = {}
        """The file to which each module's names belong, by their id."""
        self.namespaces: dict[Path, Namespace] = {}
        """The other files that were interpreted."""
        self.loading: list[ast.AST] = []
        """The imports whose files are being interpreted."""
        self.traced: Location | None = None
        """Where the module was traced whose `forward` is being called."""
        self.unmoved: set[ast.AST] = set()
        """Items, as they are written, of dicts of which nothing has left the CPU."""
        self.called: tuple[Module, int] | None = None
        """The outermost model that is being called and was never moved, and how many frames there were."""
        self.chain: Module | None = None
        """The Sequential whose layers are being called, the outermost one."""
        self.archives: list[Module] = []
        """The modules that the file writes with `torch.jit.save`."""
        self.answers: dict[ast.AST, bool] = {}
        """What was found out about a piece of syntax by looking through it."""
        self.subject: ast.AST = ast.Pass()
        """What a fact is about that no call in the file itself leads to."""
        self.visited: set[int] = set()
        """Functions that were interpreted, by id of their node."""
        self.placed: set[int] = set()
        """The classes of modules that were moved, to wherever that is, by id of their node."""
        self.standalone = False
        """Interpreting a function that nothing in the file calls."""
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.optimizers: list[Optimizer] = []
        self.backward: Scope = {}
        """What the last `backward` went through, under "modules"."""
        self.alternatives: list[tuple[Module, ...]] = []
        """Modules that one variable holds after branches."""
        self.saved: list[Location] = []
        """Where the tensors were that the file saves."""
        self._budget = budget
        self._foreign = foreign
        """How many lines of other files' functions are still followed."""
        self.loops = 0
        """How many loops are being run, those of the callers too."""
        self._nesting = 0
        self._symbols: dict[str, Symbol] = {}
        self.calls: dict[int, int] = {}

    @property
    def frame(self) -> Frame:
        """The innermost frame."""
        return self.frames[-1]

    def evaluate(self, node: ast.AST) -> Value:
        """What an expression may be."""
        handler = self.table.get(type(node))
        if handler is None or self._nesting > _DEEPEST_EXPRESSION:
            return UNKNOWN
        self._nesting += 1
        try:
            value: Value = handler(self, node)
            return value
        finally:
            self._nesting -= 1

    def execute(self, body: list[ast.stmt]) -> bool:
        """Run statements; True where control does not come out at their end."""
        table = self.table
        for statement in body:
            handler = table.get(type(statement))
            if handler is not None and handler(self, statement):
                return True
        return False

    def may_enter(self, function: Function) -> bool:
        """Whether a call of another file's function is still followed."""
        if function.scopes[-1] is self.globals:
            return True
        node = function.node
        self._foreign -= 1 + (node.end_lineno or node.lineno) - node.lineno
        return self._foreign > 0

    def spend(self, amount: int) -> bool:
        """Take from the budget of this file; False where it is used up, and calls are no longer followed."""
        self._budget -= amount
        return self._budget > 0

    def call(self, callee: Value, arguments: Arguments, node: ast.AST) -> Value:
        """What calling `callee` gives."""
        return self._call(self, callee, arguments, node)

    def lookup(self, name: str) -> Value | None:
        """The value of a name, innermost scope first."""
        for scope in self.frames[-1].scopes:
            value = scope.get(name)
            if value is not None:
                return value
        return None

    def bind(self, name: str, value: Value) -> None:
        """Set a name in the current scope."""
        frame = self.frames[-1]
        if len(frame.scopes) == 1 and isinstance(value, Mapping) and value.held is None and frame.node is None:
            self.memory.assign(value, "held", Held("container", "", name, self.own(value.node or ast.Pass())))
        self.memory.write(frame.scopes[-1 if name in frame.global_names else 0], name, value)

    def symbol(self, name: str) -> Symbol:
        """The symbol for an unknown that is the same wherever it is named."""
        found = self._symbols.get(name)
        if found is None:
            found = self._symbols[name] = Symbol.named(name)
        return found

    def exclude(self, a: Module, b: Module) -> bool:
        """Whether one variable holds either of two modules, never both."""
        return any(a in options and b in options for options in self.alternatives)

    @contextmanager
    def inside(self, frame: Frame) -> Iterator[Frame]:
        """Interpret within `frame`."""
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()

    @contextmanager
    def default_device(self, place: Location | None) -> Iterator[None]:
        """Factories make their tensors at `place`."""
        before, self.default_place = self.default_place, place
        try:
            yield
        finally:
            self.default_place = before

    def may_follow(self, function: Function) -> bool:
        """Whether a call of this function is still worth and within the limits."""
        depth = len(self.frames)
        if depth > (5 if self.standalone else _DEEPEST_CALL):
            return False
        if self.standalone and self._foreign_depth() > (0 if function.scopes[-1] is self.globals else 1):
            return False
        return sum(1 for frame in self.frames if frame.node is function.node and not frame.nested) < 2

    @property
    def is_foreign(self) -> bool:
        """Whether code of another file is being interpreted."""
        return self.frames[-1].scopes[-1] is not self.globals

    def own(self, node: ast.AST) -> ast.AST:
        """`node`, or the place in the file itself that led to it where it belongs to another file."""
        return node if not self.is_foreign else borders.own_node(self.frames, self.globals) or self.subject

    def _foreign_depth(self) -> int:
        return sum(1 for frame in self.frames if frame.scopes[-1] is not self.globals)

    def origin(self, node: ast.AST, how: str, *, literal: bool = False) -> Origin:
        """An origin at `node`, in the current function."""
        frame, foreign = self.frames[-1], self.is_foreign
        if foreign:
            node, frame = self.own(node), borders.own_frame(self.frames, self.globals) or frame
        return Origin(node, how, frame.name, frame.cls.node.name if frame.cls else "", literal, foreign)

    def where(self) -> Where:
        """The current function of the file itself, and the devices that can be named in it."""
        return self._where_in(borders.own_frame(self.frames, self.globals) or self.frames[-1])

    def _where_in(self, frame: Frame) -> Where:
        in_module = isinstance(frame.receiver, Module)
        own, outer = _named_devices(frame)
        return Where(frame.name, frame.cls.node.name if frame.cls else "", frame.node, in_module, own, outer)

    def report(self, node: ast.AST, operation: str, role: str, operands: list[Operand]) -> None:
        """Keep an operation for judgement, unless the code around it has asked where things are."""
        if any(frame.guards for frame in self.frames):
            return
        if self.is_foreign:
            seen = borders.from_outside(self.frames, self.globals, operands)
            if seen is None:
                return
            node, operation, operands = seen
        operands = [replace(each, unmoved=True) if each.node in self.unmoved else each for each in operands]
        path = tuple(frame.call for frame in self.frames if frame.call is not None)
        caller = self._where_in(self.frames[self.called[1] - 1]) if self.called is not None else None
        self.facts.operation(node, operation, role, tuple(operands), self.where(), path, caller)

    def note(self, fact: Fact) -> None:
        """Keep a fact about the file itself."""
        if not self.is_foreign:
            self.facts.add(fact)


_Named = tuple[tuple[str, Location], ...]


def _named_devices(frame: Frame) -> tuple[_Named, _Named]:
    """Expressions that name a device: the function's own variables and arguments, and those from outside it."""
    own = dict(_devices_in(frame.scopes[0]))
    if isinstance(frame.receiver, Instance | Module):
        own |= {f"self.{name}": place for name, place in _devices_in(frame.receiver.attributes)}
    if isinstance(frame.node, ast.FunctionDef | ast.AsyncFunctionDef):
        for parameter in frame.node.args.args:
            value = frame.scopes[0].get(parameter.arg)
            if isinstance(value, Tensor) and value.certain and value.place is not None:
                own[f"{parameter.arg}.device"] = value.place
    outer = {name: place for scope in frame.scopes[:0:-1] for name, place in _devices_in(scope)}
    return tuple(own.items()), tuple(outer.items())


def _devices_in(scope: Scope) -> Iterator[tuple[str, Location]]:
    for name, value in scope.items():
        value = value.found if isinstance(value, Imported) and value.found is not None else value
        if "device" in name.lower() and isinstance(value, Device | Constant | Symbol):
            place = as_place(value)
            if place is not None:
                yield name, place
