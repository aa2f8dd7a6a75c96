"""Which line made a tensor, or left it behind.

Recorded origins are believed; without them the user's source is searched: the statement that bound the variable, the
assignment to the attribute in its class, the entry of the container. A move of the tensor whose result nothing keeps
is what left it behind, wherever it was made.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from samedevice.explaining.flow import Suspect
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import (
    device_of,
    instance_dict,
    is_kind,
    is_module,
    is_tensor,
    module_of_class,
    mro_of,
    name_of_class,
    namespace_of,
    tensors_of_module,
)
from samedevice.explaining.making import factory_call, fixed_device, from_data
from samedevice.explaining.routes import Route, Step, resolve
from samedevice.explaining.sources import Source, read_source
from samedevice.explaining.syntax import bindings_of, call_name, is_discarded_move, is_forgotten_move, move_calls
from samedevice.faults import Origin
from samedevice.usercode import is_user_file

__all__ = [
    "Made",
    "Origins",
    "default_argument",
    "discarded_move",
    "forgetting_loop",
    "in_source",
    "only_assignment",
    "root_made",
    "where_made",
]


_TAKING = ("pop", "popitem", "popleft", "get", "setdefault")
"""Methods of containers that give out what they hold."""


class Origins(Protocol):
    """What was recorded about tensors while the program ran; `tracing` implements it."""

    def origin_of(self, tensor: Any) -> Origin | None:
        """Where the tensor's storage was made, moved, loaded, copied or computed; None where that was not seen."""

    def moves_of(self, tensor: Any) -> Sequence[Origin]:
        """The copies on other devices that were made of it, oldest first."""

    def root_of(self, tensor: Any) -> Origin | None:
        """Where the data that it was computed from were made, moved or loaded."""

    def source_of(self, tensor: Any) -> Any:
        """The living tensor that it was copied or moved from, or None."""

    def entered_of(self, tensor: Any) -> int | None:
        """The storage from before its line that it was computed from by that line, as its `_cdata`, or None."""


@dataclass(frozen=True, slots=True)
class Made:
    """A line of the user's code and what it did to the tensor."""

    file: str
    line: int
    function: str = ""
    event: str = ""
    """made, moved, loaded, copied or computed; "" where only the source was read."""
    operation: str = ""
    recorded: bool = False

    @property
    def source(self) -> Source:
        """The file's source."""
        return read_source(self.file)

    @property
    def statement(self) -> ast.stmt | None:
        """The statement on the line."""
        return self.source.statement_at(self.line)

    @property
    def fixes_device(self) -> bool:
        """Whether the line names a fixed device for what it makes."""
        recorded = self.event in ("made", "moved")
        return fixed_device(self.statement, outermost=not recorded) is not None

    @property
    def text(self) -> str:
        """The line, stripped."""
        return self.source.line(self.line)


def where_made(suspect: Suspect, origins: Origins | None) -> Made | None:
    """The line that made or left behind what `suspect` names.

    Args:
        suspect: where the walk back from the failing line ended.
        origins: what was recorded while the program ran, if anything.

    Returns:
        None where neither the record nor the source tells.
    """
    recorded = _recorded(suspect, origins)
    partial = _partly_moved(suspect)
    if partial is not None and (recorded is None or recorded.event != "moved"):
        return partial
    return recorded or in_source(suspect)


def root_made(suspect: Suspect, origins: Origins | None) -> Made | None:
    """The line that made, moved or loaded the data that the suspect was computed from, where that was recorded."""
    origin = origins.root_of(suspect.value) if origins is not None and is_tensor(suspect.value) else None
    if origin is None or not is_user_file(origin.file):
        return None
    return Made(origin.file, origin.line, origin.function, origin.event, origin.operation, True)


def in_source(suspect: Suspect) -> Made | None:
    """The line by reading the source alone."""
    steps = suspect.route.steps[::-1] if suspect.route is not None else ()
    for look_up in (_set_on_this_object, _held_by):
        for step in steps:
            made = look_up(step, suspect.frame)
            if made is not None:
                return made
    entry = _entry_set(suspect)
    if entry is not None:
        return entry
    if suspect.binding is not None:
        helped = _in_helper(suspect)
        return helped or Made(suspect.frame.file, suspect.binding.line, suspect.frame.function)
    enclosing = _in_enclosing(suspect)
    if enclosing is not None:
        return enclosing
    default = default_argument(suspect)
    if default is not None:
        return Made(suspect.frame.file, default.lineno, suspect.frame.function)
    if suspect.maker is not None:
        frame, line = suspect.maker
        return Made(frame.file, line, frame.function)
    if suspect.route is not None and suspect.route.scope == "global":
        return _at_module_level(suspect.route)
    if isinstance(suspect.node, ast.expr) and suspect.route is None:
        return _taken_from(suspect.node, suspect.frame) or Made(
            suspect.frame.file, suspect.node.lineno, suspect.frame.function
        )
    return None


def _in_helper(suspect: Suspect) -> Made | None:
    """The line of a helper in the same file that makes, on a device of its own choice, all that it returns."""
    binding, source = suspect.binding, suspect.frame.source
    value = binding.value if binding is not None and not binding.loop else None
    functions = list(source.functions_named(call_name(value))) if isinstance(value, ast.Call) else []
    if len(functions) != 1 or isinstance(functions[0], ast.Lambda):
        return None
    returned = [node for node in ast.walk(functions[0]) if isinstance(node, ast.Return) and node.value is not None]
    statement: ast.AST | None = returned[0] if len(returned) == 1 else None
    if isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name):
        bound = bindings_of(statement.value.id, functions[0])
        statement = bound[0].node if len(bound) == 1 else None
    chooses = statement is not None and (
        factory_call(statement, source) or from_data(statement, source) or fixed_device(statement, outermost=True)
    )
    line = getattr(statement, "lineno", 0)
    return Made(suspect.frame.file, line, functions[0].name) if chooses else None


def _in_enclosing(suspect: Suspect) -> Made | None:
    """For a closure's variable: the statement of the function around it, which may have returned long ago."""
    route, frame = suspect.route, suspect.frame
    if route is None or route.scope != "closure":
        return None
    around = frame.source.functions_around(frame.frame.f_code.co_firstlineno)
    for function in reversed(around[:-1]):
        bindings = bindings_of(route.base, function)
        if bindings:
            return Made(frame.file, bindings[-1].line, getattr(function, "name", ""))
    return None


def _taken_from(node: ast.expr, frame: UserFrame) -> Made | None:
    """Where what an expression takes apart came from: the dict of `batch.pop("mask")`, the body of a property."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TAKING:
        owner = node.func.value
        bindings = bindings_of(owner.id, frame.definition or frame.source.tree) if isinstance(owner, ast.Name) else []
        earlier = [binding for binding in bindings if binding.line < node.lineno]
        return Made(frame.file, earlier[-1].line, frame.function) if earlier else None
    route = resolve(node.value, frame) if isinstance(node, ast.Attribute) else None
    if route is None or not isinstance(node, ast.Attribute):
        return None
    spaces = map(namespace_of, _classes_of(route.value))
    found = next((space[node.attr] for space in spaces if node.attr in space), None)
    code = getattr(found.fget, "__code__", None) if type(found) is property else None
    if type(code) is not types.CodeType or not is_user_file(code.co_filename):
        return None
    definition = read_source(code.co_filename).function_at(code.co_firstlineno, code.co_name)
    returns = [inner for inner in ast.walk(definition) if isinstance(inner, ast.Return)] if definition else []
    return Made(code.co_filename, returns[-1].lineno, code.co_name) if returns else None


def only_assignment(step: Step) -> Made | None:
    """The one line of its owner's class that gives an attribute its value; None where there are several or none.

    Args:
        step: the look-up of the attribute.
    """
    for kind in _classes_of(step.owner):
        file = _file_of(kind)
        definition = read_source(file).class_named(name_of_class(kind, qualified=True)) if file is not None else None
        if file is None or definition is None:
            continue
        setting = [
            node for node in ast.walk(definition) if isinstance(node, ast.stmt) and _assigns(node, str(step.key))
        ]
        if setting:
            line = setting[0].lineno
            function = getattr(read_source(file).function_at(line), "name", "")
            return Made(file, line, function) if len(setting) == 1 else None
    return None


def discarded_move(suspect: Suspect, expected: str, origins: Origins | None) -> Made | None:
    """A move of the very tensor whose result nothing kept, so that the old one went on being used.

    Args:
        suspect: the tensor.
        expected: the device where it should have been.
        origins: what was recorded, if anything.

    Returns:
        The line of the move; None where there is none.
    """
    if is_module(suspect.value):
        return None
    for origin in reversed(
        origins.moves_of(suspect.value) if origins is not None and suspect.value is not None else ()
    ):
        source = read_source(origin.file)
        statement = source.statement_at(origin.line)
        dropped = is_discarded_move(statement) or forgetting_loop(source, statement)
        if dropped is not None or _sets_shadowed_entry(statement, suspect):
            return Made(origin.file, origin.line, origin.function, "moved", origin.operation, True)
    return _discarded_in_source(suspect) or _shadowed_in_source(suspect)


def default_argument(suspect: Suspect) -> ast.expr | None:
    """The default value that a parameter kept, since the call did not pass it."""
    route, definition = suspect.route, suspect.frame.definition
    if route is None or route.scope != "parameter" or definition is None or suspect.maker is not None:
        return None
    arguments = definition.args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(name, value) for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value]
    return next((value for name, value in pairs if name.arg == route.base), None)


def _recorded(suspect: Suspect, origins: Origins | None) -> Made | None:
    tensor = _tensor_of(suspect.value, suspect.device)
    if origins is None or tensor is None:
        return None
    origin = origins.origin_of(tensor)
    if origin is None or not is_user_file(origin.file):
        return None
    return Made(origin.file, origin.line, origin.function, origin.event, origin.operation, True)


def _tensor_of(value: Any, device: str) -> Any:
    if is_tensor(value):
        return value
    if not is_module(value):
        return None
    tensors = [tensor for _, _, tensor in tensors_of_module(value)]
    return next((tensor for tensor in tensors if device_of(tensor) == device), next(iter(tensors), None))


def _partly_moved(suspect: Suspect) -> Made | None:
    """The statement that moved what the variable holds, and missed this part of it: it goes not deep enough."""
    binding = suspect.binding
    if binding is None or suspect.route is None or not suspect.route.steps or binding.loop:
        return None
    if is_module(suspect.route.steps[0].owner) and suspect.route.steps[-1].kind in ("parameter", "buffer", "submodule"):
        return None  # a module's `.to()` goes all the way down; what is not there now came later
    if binding.value is None or not any(True for _ in move_calls(binding.value)):
        return None
    return Made(suspect.frame.file, binding.line, suspect.frame.function)


def _definition_of(kind: type, frame: UserFrame) -> tuple[str, ast.ClassDef] | None:
    """The file and the text of the user's class `kind`; one without methods tells no file, only its module."""
    told = frame.frame.f_globals.get("__name__")
    for file in (_file_of(kind), frame.file if module_of_class(kind) == told else None):
        definition = read_source(file).class_named(name_of_class(kind, qualified=True)) if file is not None else None
        if file is not None and definition is not None:
            return file, definition
    return None


def _held_by(step: Step, frame: UserFrame) -> Made | None:
    """The assignment that gave an attribute its value, in the class of its owner; or an entry of a container."""
    if step.kind == "item":
        return None
    for kind in _classes_of(step.owner):
        found = _definition_of(kind, frame)
        line = _attribute_line(found[1], str(step.key)) if found is not None else None
        if found is not None and line is not None:
            function = read_source(found[0]).function_at(line)
            return Made(found[0], line, getattr(function, "name", ""))
    return _assigned_from_outside(step, frame)


def _attribute_line(definition: ast.ClassDef, name: str) -> int | None:
    """Where the class gives `self.name` its value: the last line of `__init__` that does, else the first elsewhere."""
    lines: list[tuple[int, bool]] = []
    name = name.removeprefix(f"_{definition.name.lstrip('_')}") if "__" in name else name
    for method in definition.body:
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            sets = isinstance(method, ast.Assign | ast.AnnAssign) and method.value is not None
            if sets and _assigns(method, name, class_level=True):
                lines.append((method.lineno, False))
            continue
        first = method.args.args[0].arg if method.args.args else "self"
        setting = [node for node in ast.walk(method) if _assigns(node, name, first) or _registers(node, name)]
        lines.extend((getattr(node, "lineno", 0), method.name == "__init__") for node in setting)
    from_init = [line for line, init in lines if init]
    others = [line for line, init in lines if not init]
    # A method that fills in later what `__init__` only declares (`self.mask = None`) is where the tensor comes from.
    if from_init and not (others and _is_constant_at(definition, from_init[-1])):
        return from_init[-1]
    return others[0] if others else None


def _is_constant_at(definition: ast.ClassDef, line: int) -> bool:
    return any(
        isinstance(node, ast.Assign) and node.lineno == line and isinstance(node.value, ast.Constant)
        for node in ast.walk(definition)
    )


def _assigns(node: ast.AST, name: str, owner: str = "self", *, class_level: bool = False) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    for target in targets:
        for part in ast.walk(target):
            if class_level and isinstance(part, ast.Name) and part.id == name:
                return True
            if isinstance(part, ast.Attribute) and part.attr == name and isinstance(part.value, ast.Name):
                return part.value.id == owner
    return False


def _registers(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call) or call_name(node) not in ("register_buffer", "register_parameter", "add_module"):
        return False
    return bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == name


def _set_on_this_object(step: Step, frame: UserFrame) -> Made | None:
    """`model.layers[2].norm = …`, where `model.layers[2]` is the very owner: said later than what its class says."""
    lines: list[int] = []
    assignments = [node for node in ast.walk(frame.source.tree) if isinstance(node, ast.Assign)]
    for node in assignments:
        for target in node.targets:
            if isinstance(target, ast.Attribute | ast.Subscript) and _sets_part(target, step) and not _is_own(target):
                owner = resolve(target.value, frame)
                lines += [node.lineno] if owner is not None and owner.value is step.owner else []
    return Made(frame.file, max(lines), _function_name(frame.source, max(lines))) if lines else None


def _is_own(target: ast.expr) -> bool:
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return isinstance(target, ast.Name) and target.id in ("self", "cls")


def _function_name(source: Source, line: int) -> str:
    return getattr(source.function_at(line), "name", "<module>")


def _assigned_from_outside(step: Step, frame: UserFrame) -> Made | None:
    """`net.head = …`, or `layers[2] = …` of layers in a row, somewhere in the file of the failing line."""
    for node in ast.walk(frame.source.tree):
        if isinstance(node, ast.Assign) and any(_sets_part(target, step) for target in node.targets):
            return Made(frame.file, node.lineno, getattr(frame.source.function_at(node.lineno), "name", ""))
    return None


def _sets_part(target: ast.expr, step: Step) -> bool:
    if isinstance(target, ast.Subscript) and step.kind == "submodule":
        return isinstance(target.slice, ast.Constant) and str(target.slice.value) == str(step.key)
    return isinstance(target, ast.Attribute) and target.attr == step.key


def _entry_set(suspect: Suspect) -> Made | None:
    """`table[key] = …` for an entry of a container that a global variable holds."""
    route = suspect.route
    if route is None or route.scope != "global" or not route.steps or route.steps[0].kind != "item":
        return None
    source = route.frame.source
    for node in [node for node in ast.walk(source.tree) if isinstance(node, ast.Assign)]:
        entries = [target for target in node.targets if isinstance(target, ast.Subscript)]
        if any(source.text_of(target.value) == route.base for target in entries):
            return Made(source.file, node.lineno, getattr(source.function_at(node.lineno), "name", ""))
    return None


def _at_module_level(route: Route) -> Made | None:
    file = route.frame.file
    for node in reversed(read_source(file).tree.body):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(part, ast.Name) and part.id == route.base for t in targets for part in ast.walk(t)):
                return Made(file, node.lineno, "<module>")
    return None


def _discarded_in_source(suspect: Suspect) -> Made | None:
    """A line that is only a move of the same expression, or of the object that holds it, before it was used."""
    for frame, text in [(suspect.frame, suspect.name), *suspect.aliases]:
        scope = frame.definition or frame.source.tree
        for node in ast.walk(scope):
            call = is_discarded_move(node) if isinstance(node, ast.Expr) else None
            if call is None or not isinstance(call.func, ast.Attribute) or call.lineno > frame.line:
                continue
            moved = resolve(call.func.value, frame)
            if moved is not None and is_module(moved.value):
                continue  # a module moves in place
            if _is_or_begins(frame.source.text_of(call.func.value), text):
                return Made(frame.file, call.lineno, frame.function)
    return None


def forgetting_loop(source: Source, statement: ast.stmt | None) -> ast.For | ast.AsyncFor | None:
    """The loop whose variable alone gets what `statement` moves."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.For | ast.AsyncFor) and node.body[0] is statement and is_forgotten_move(node):
            return node
    return None


def _is_or_begins(part: str, whole: str) -> bool:
    """Whether expression `part` is `whole` or what `whole` is looked up in: `graph` begins `graph.x`."""
    part, whole = part.replace(" ", ""), whole.replace(" ", "")
    return whole == part or whole.startswith((f"{part}.", f"{part}["))


def _sets_shadowed_entry(statement: ast.stmt | None, suspect: Suspect) -> bool:
    """`batch.mask = batch.mask.to(…)` on a mapping sets an attribute beside the entry that goes on being used."""
    holder = suspect.holder
    if not isinstance(statement, ast.Assign) or holder is None or holder.kind != "item":
        return False
    return type(holder.key) is str and any(
        isinstance(target, ast.Attribute) and target.attr == holder.key for target in statement.targets
    )


def _shadowed_in_source(suspect: Suspect) -> Made | None:
    holder = suspect.holder
    if holder is None or holder.kind != "item" or type(holder.key) is not str:
        return None
    owner = suspect.route.steps[-1].owner if suspect.route is not None else None
    if not is_tensor(instance_dict(owner).get(holder.key)):
        return None
    for node in ast.walk(suspect.frame.source.tree):
        if isinstance(node, ast.stmt) and _sets_shadowed_entry(node, suspect) and any(True for _ in move_calls(node)):
            return Made(suspect.frame.file, node.lineno, suspect.frame.function)
    return None


def _classes_of(owner: object) -> tuple[type, ...]:
    """The classes whose bodies may give `owner` its attributes: its type's, or its own where it is a class."""
    return mro_of(owner) if is_kind(owner, type) else mro_of(type(owner))


def _file_of(kind: type) -> str | None:
    """The user's file that defines class `kind`, or None."""
    file = instance_dict(sys.modules.get(module_of_class(kind))).get("__file__")
    for function in list(namespace_of(kind).values()):
        if type(function) is types.FunctionType and is_user_file(function.__code__.co_filename):
            return function.__code__.co_filename
    return file if type(file) is str and is_user_file(file) else None
