"""How the line that makes an attribute can say the device of what stands beside it in the same object.

For objects that are no module, which nothing moves as a whole: what they hold is moved where it is assigned.
"""

from __future__ import annotations

import ast
import types

from samedevice.explaining.live import (
    device_of,
    devices_of_parameters,
    instance_dict,
    is_module,
    is_parameter,
    is_tensor,
    namespace_of,
)
from samedevice.explaining.made import Made
from samedevice.explaining.mending.devices_in_scope import device_in_source, is_device
from samedevice.explaining.routes import Step
from samedevice.explaining.set_in_class import only_assignment
from samedevice.explaining.sources import Function, Source
from samedevice.explaining.syntax import bindings_of, call_name, move_calls, moved_device

__all__ = ["device_beside"]


def device_beside(step: Step, made: Made, expected: str) -> str | None:
    """What the line that gives an attribute its value can say for `expected`.

    Args:
        step: the look-up of the attribute.
        made: that line.
        expected: the device that the attribute should be on.

    Returns:
        The words by which the line of a sibling says it, else the device that the function speaks of, else for a
        module or parameter a global device, else that of a module that the function is given;
        None where there is none of them.
    """
    siblings = {
        name: (line, value) for name, value in instance_dict(step.owner).items()
        if type(name) is str and name != step.key and _is_there(value, expected)
        and (line := only_assignment(Step(step.owner, "attribute", name))) is not None
        and (line.file, line.function) == (made.file, made.function)
    }  # fmt: skip
    said = [_said_by(line, made) for line, _ in siblings.values()]
    given = [_of_given(name, line) for name, (line, value) in siblings.items() if is_module(value)]
    spoken = device_in_source(made.source, made.line) if _may_be_known(step, expected) else None
    value = instance_dict(step.owner).get(step.key)
    # A helper's plain tensor is moved where it is used rather than tied to a global variable.
    shared = _global_device(step, made, expected) if is_module(value) or is_parameter(value) else None
    ways = (*said, spoken, shared, *given)
    return next((text for text in ways if text is not None), None)


def _may_be_known(step: Step, expected: str) -> bool:
    """Whether the object keeps `expected` as its own device; where it keeps none, a module's author meant that."""
    own = instance_dict(step.owner)
    kept = [own[name] for name in ("device", "dev") if name in own]
    return any(is_device(each, expected) for each in kept) if kept else is_module(own.get(step.key))


def _is_there(value: object, expected: str) -> bool:
    if is_module(value):
        return devices_of_parameters(value) == {expected}
    return is_tensor(value) and device_of(value) == expected


def _said_by(sibling: Made, made: Made) -> str | None:
    """The device that the sibling's line moves to or makes on, where the line `made` can say it too."""
    statement = sibling.statement
    for call in ast.walk(statement) if statement is not None else ():
        if not isinstance(call, ast.Call):
            continue
        if call_name(call) == "cuda" and not call.args and not call.keywords and call in list(move_calls(call)):
            return '"cuda"'
        keyword = next((word.value for word in call.keywords if word.arg == "device"), None)
        device = keyword or (moved_device(call) if call in list(move_calls(call)) else None)
        if device is not None and _can_be_said(device, made.source, made.line):
            return sibling.source.text_of(device)
    return None


def _can_be_said(device: ast.expr, source: Source, line: int) -> bool:
    """Whether everything that `device` reads has its value on `line` already."""
    function = source.function_at(line)
    if function is None or isinstance(function, ast.Lambda):
        return False
    if isinstance(device, ast.Constant):
        return type(device.value) is str
    if any(isinstance(node, ast.Call) for node in ast.walk(device)):
        return False
    read = [node for node in ast.walk(device) if isinstance(node, ast.Name)]
    return bool(read) and all(_is_known(node.id, function, line) for node in read) and _is_set(device, function, line)


def _is_known(name: str, function: Function, line: int) -> bool:
    return all(binding.line < line for binding in bindings_of(name, function))


def _is_set(device: ast.expr, function: Function, line: int) -> bool:
    """Whether an attribute of `self` is set before `line`; those of others are taken to be."""
    if not isinstance(device, ast.Attribute) or ast.unparse(device.value) != "self":
        return True
    return any(
        ast.unparse(target) == ast.unparse(device)
        for node in ast.walk(function) if isinstance(node, ast.Assign) and node.lineno < line
        for target in node.targets
    )  # fmt: skip


def _global_device(step: Step, made: Made, expected: str) -> str | None:
    """A variable `device` of the module that the class is in, which no variable of the function hides."""
    methods = (each for each in namespace_of(type(step.owner)).values() if type(each) is types.FunctionType)
    names = next((method.__globals__ for method in methods), {})
    function = made.source.function_at(made.line)
    if function is None:
        return None
    free = (name for name in ("device", "DEVICE", "dev") if is_device(names.get(name), expected))
    return next((name for name in free if not bindings_of(name, function)), None)


def _of_given(name: str, line: Made) -> str | None:
    """The device of the parameters of `model`, which the function is given and `self.model = model` keeps."""
    statement, function = line.statement, line.source.function_at(line.line)
    if not isinstance(statement, ast.Assign) or function is None:
        return None
    targets, parts = _in_row(statement.targets[0]), _in_row(statement.value)
    given = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
    for target, part in zip(targets, parts, strict=False):
        if not isinstance(target, ast.Attribute) or target.attr != name or not isinstance(part, ast.Name):
            continue
        if part.id in given and not bindings_of(part.id, function):
            return f"next({part.id}.parameters()).device"
    return None


def _in_row(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
