"""Which line of the source gives an attribute of an object its value."""

from __future__ import annotations

import ast
import sys
import types

from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import (
    instance_dict,
    is_kind,
    module_of_class,
    mro_of,
    name_of_class,
    namespace_of,
)
from samedevice.explaining.made import Made
from samedevice.explaining.routes import Step, resolve
from samedevice.explaining.sources import Source, read_source
from samedevice.explaining.syntax import call_name
from samedevice.usercode import is_user_file

__all__ = ["classes_of", "held_by", "only_assignment", "set_on_this_object"]


def only_assignment(step: Step) -> Made | None:
    """The one line of its owner's class that gives an attribute its value; None where there are several or none.

    Args:
        step: the look-up of the attribute.
    """
    for kind in classes_of(step.owner):
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


def set_on_this_object(step: Step, frame: UserFrame) -> Made | None:
    """`model.layers[2].norm = …`, where `model.layers[2]` is the very owner: said later than what its class says."""
    lines: list[int] = []
    assignments = [node for node in ast.walk(frame.source.tree) if isinstance(node, ast.Assign)]
    for node in assignments:
        for target in node.targets:
            if isinstance(target, ast.Attribute | ast.Subscript) and _sets_part(target, step) and not _is_own(target):
                owner = resolve(target.value, frame)
                lines += [node.lineno] if owner is not None and owner.value is step.owner else []
    return Made(frame.file, max(lines), _function_name(frame.source, max(lines))) if lines else None


def held_by(step: Step, frame: UserFrame) -> Made | None:
    """The assignment that gave an attribute its value, in the class of its owner; or an entry of a container."""
    if step.kind == "item":
        return None
    for kind in classes_of(step.owner):
        found = _definition_of(kind, frame)
        line = _attribute_line(found[1], str(step.key)) if found is not None else None
        if found is not None and line is not None:
            function = read_source(found[0]).function_at(line)
            return Made(found[0], line, getattr(function, "name", ""))
    return _assigned_from_outside(step, frame)


def _assigned_from_outside(step: Step, frame: UserFrame) -> Made | None:
    """`net.head = …`, or `layers[2] = …` of layers in a row, somewhere in the file of the failing line."""
    for node in ast.walk(frame.source.tree):
        if isinstance(node, ast.Assign) and any(_sets_part(target, step) for target in node.targets):
            return Made(frame.file, node.lineno, getattr(frame.source.function_at(node.lineno), "name", ""))
    return None


def _definition_of(kind: type, frame: UserFrame) -> tuple[str, ast.ClassDef] | None:
    """The file and the text of the user's class `kind`; one without methods tells no file, only its module."""
    told = frame.frame.f_globals.get("__name__")
    for file in (_file_of(kind), frame.file if module_of_class(kind) == told else None):
        definition = read_source(file).class_named(name_of_class(kind, qualified=True)) if file is not None else None
        if file is not None and definition is not None:
            return file, definition
    return None


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


def _is_own(target: ast.expr) -> bool:
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return isinstance(target, ast.Name) and target.id in ("self", "cls")


def _function_name(source: Source, line: int) -> str:
    return getattr(source.function_at(line), "name", "<module>")


def _sets_part(target: ast.expr, step: Step) -> bool:
    if isinstance(target, ast.Subscript) and step.kind == "submodule":
        return isinstance(target.slice, ast.Constant) and str(target.slice.value) == str(step.key)
    return isinstance(target, ast.Attribute) and target.attr == step.key


def classes_of(owner: object) -> tuple[type, ...]:
    """The classes whose bodies may give `owner` its attributes: its type's, or its own where it is a class."""
    return mro_of(owner) if is_kind(owner, type) else mro_of(type(owner))


def _file_of(kind: type) -> str | None:
    """The user's file that defines class `kind`, or None."""
    file = instance_dict(sys.modules.get(module_of_class(kind))).get("__file__")
    for function in list(namespace_of(kind).values()):
        if type(function) is types.FunctionType and is_user_file(function.__code__.co_filename):
            return function.__code__.co_filename
    return file if type(file) is str and is_user_file(file) else None
