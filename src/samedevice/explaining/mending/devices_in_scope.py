"""How the user's own code says "the right device" at a place: `device`, `self.device`, `args.device`, `x.device`."""

from __future__ import annotations

import ast
from typing import Any

from samedevice.explaining.diagnosing.evidence import Evidence
from samedevice.explaining.flow import binding_of
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import (
    device_of,
    devices_of_parameters,
    instance_dict,
    is_module,
    is_parameter,
    is_tensor,
    is_torch_device,
    shape_of,
)
from samedevice.explaining.making import fixed_device
from samedevice.explaining.operands import leaves
from samedevice.explaining.routes import resolve
from samedevice.explaining.sources import Function, Source
from samedevice.explaining.syntax import bindings_of

__all__ = ["device_in_frame", "device_in_source", "device_of_neighbour", "is_device", "moves_by_cuda", "written_device"]

_NAMES = ("device", "dev", "DEVICE", "target_device", "gpu")


def device_in_frame(frame: UserFrame, expected: str, line: int) -> str | None:
    """How code on line `line` of `frame` can say `expected`: a device's name, else that of something that is there.

    A script has its `device`. A method of a module asks what it is given, or its own parameters: a module that
    reads a global variable follows no `.to()`.
    """
    own, shared = frame.frame.f_locals, frame.frame.f_globals
    if is_module(own.get("self")):
        return (
            _device_variable(frame, own, expected, line)
            or _something_there(frame, expected, line)
            or _device_attribute(frame, expected, line)
            or _device_variable(frame, shared, expected, line)
        )
    imported = {name: value for name, value in shared.items() if own is shared or not _is_of_main(frame, name)}
    return (
        _device_variable(frame, own, expected, line)
        or _device_variable(frame, imported, expected, line)
        or _device_attribute(frame, expected, line)
        or _something_there(frame, expected, line)
        or _device_variable(frame, shared, expected, line)
    )


def _is_of_main(frame: UserFrame, name: str) -> bool:
    """Whether only `if __name__ == "__main__":` sets the global variable: who imports the function has none."""
    blocks = [node for node in frame.source.tree.body if isinstance(node, ast.If) and "__name__" in ast.dump(node.test)]
    bound = bindings_of(name, frame.source.tree)
    return bool(bound) and all(
        any(block.lineno < one.line <= (block.end_lineno or 0) for block in blocks) for one in bound
    )


def _device_variable(frame: UserFrame, scope: dict[str, Any], expected: str, line: int) -> str | None:
    for name in sorted(scope, key=lambda name: (name not in _NAMES, name)):
        if is_device(scope[name], expected) and _is_bound(frame, name, line):
            return str(name)
    return None


def _device_attribute(frame: UserFrame, expected: str, line: int) -> str | None:
    for name, value in frame.frame.f_locals.items():
        for attribute in _NAMES:
            if is_device(instance_dict(value).get(attribute), expected) and _is_bound(frame, name, line):
                return f"{name}.{attribute}"
    return None


def _something_there(frame: UserFrame, expected: str, line: int) -> str | None:
    """`x.device` of a tensor that is there, or the device of a module's parameters."""
    own = frame.frame.f_locals
    for name, value in own.items():
        if is_tensor(value) and device_of(value) == expected and _is_bound(frame, name, line):
            return f"{name}.device"
    used = _used(frame)
    for name, value in own.items():
        if name in used and is_module(value) and _is_there(value, expected) and _is_bound(frame, name, line):
            return f"next({name}.parameters()).device"
    for name, value in instance_dict(own.get("self")).items():
        if is_module(value) and _is_there(value, expected):
            return f"next(self.{name}.parameters()).device"
    return None


def _used(frame: UserFrame) -> set[str]:
    """The names that the running statement reads, and those that went into what it reads."""
    found: set[str] = set()
    queue: list[ast.AST | None] = [frame.statement if frame.running is None else frame.running]
    while queue:
        node = queue.pop()
        for inner in ast.walk(node) if node is not None else ():
            if isinstance(inner, ast.Name) and inner.id not in found:
                found.add(inner.id)
                binding = binding_of(inner.id, frame)
                queue.append(binding.value if binding is not None else None)
    return found


def written_device(frame: UserFrame, expected: str) -> str | None:
    """The literal by which the running statement, else another line of the file, says `expected`."""
    for root in (frame.statement, frame.source.tree):
        for call in ast.walk(root) if root is not None else ():
            device = fixed_device(call) if isinstance(call, ast.Call) else None
            if isinstance(device, ast.Constant) and is_device(device.value, expected):
                return frame.source.text_of(device)
            if isinstance(device, ast.Call) and not device.args and not device.keywords:
                kind = device.func.attr if isinstance(device.func, ast.Attribute) else ""
                if is_device(kind, expected):
                    return f'"{kind}"'
    return None


def _is_there(module: Any, expected: str) -> bool:
    """Whether all parameters are there: of a module in parts, the first says nothing about the others."""
    return devices_of_parameters(module) == {expected}


def device_in_source(source: Source, line: int) -> str | None:
    """Where no frame is left: how the function around `line` speaks of a device elsewhere, or can.

    A parameter called like a device, an attribute `device` set before, another `device=` in the same function, and in
    a module's method the device of its parameters.
    """
    function = source.function_at(line)
    if function is None or isinstance(function, ast.Lambda):
        return None
    names = [argument.arg for argument in [*function.args.args, *function.args.kwonlyargs]]
    named = next((name for name in _NAMES[:3] if name in names), None)
    return (
        named
        or _measured_there(source, line)
        or _of_self(function, line)
        or _of_class(source, line, names)
        or _said_elsewhere(function, names)
        or _of_measured(function, names)
        or _of_parameters(source, line, names)
    )


def _measured_there(source: Source, line: int) -> str | None:
    """`x.device` where the very statement asks for `x.shape` or `x.size(0)`."""
    for node in ast.walk(source.statement_at(line) or ast.Pass()):
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "size") and isinstance(node.value, ast.Name):
            return f"{node.value.id}.device"
    return None


def _of_class(source: Source, line: int, names: list[str]) -> str | None:
    """`self.device` where a method of the same class sets it."""
    definition = source.class_at(line)
    if names[:1] != ["self"] or definition is None or getattr(source.function_at(line), "name", "") == "__init__":
        return None
    for node in ast.walk(definition):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Attribute) and ast.unparse(target) == "self.device":
                return "self.device"
    return None


def _said_elsewhere(function: ast.AST, names: list[str]) -> str | None:
    """The value of another `device=` that reads only the function's parameters."""
    for call in ast.walk(function):
        for word in call.keywords if isinstance(call, ast.Call) else ():
            read = [node.id for node in ast.walk(word.value) if isinstance(node, ast.Name)]
            if word.arg == "device" and read and all(name in names for name in read):
                return ast.unparse(word.value)
    return None


def _of_measured(function: ast.AST, names: list[str]) -> str | None:
    """`x.device` of a parameter that is seen to be a tensor, since its `shape` or `size()` is read."""
    for node in ast.walk(function):
        measured = node.value if isinstance(node, ast.Attribute) and node.attr in ("shape", "size") else None
        if isinstance(measured, ast.Name) and measured.id in names and measured.id != "self":
            return f"{measured.id}.device"
    return None


def _of_parameters(source: Source, line: int, names: list[str]) -> str | None:
    definition = source.class_at(line)
    bases = [ast.unparse(base) for base in definition.bases] if definition is not None else []
    function = source.function_at(line)
    constructing = getattr(function, "name", "") == "__init__"
    if names[:1] == ["self"] and not constructing and any(base.endswith("Module") for base in bases):
        return "next(self.parameters()).device"
    return None


def device_of_neighbour(evidence: Evidence) -> str | None:
    """`x.device` for an operand on the right side that has a plain name on the failing line."""
    frame = evidence.frame
    if frame is None or evidence.side is None:
        return None
    right = [one for one in evidence.seen if one.device == evidence.side.expected]
    # A parameter's device is right too, but the data's own says better what the line is about.
    for one in sorted(right, key=lambda one: is_parameter(one.tensor)):
        route = resolve(one.node, frame) if one.node is not None else None
        if route is not None and is_tensor(route.value):
            return f"{route.text}.device"
        if route is None and one.node is not None:
            read = [leaf for leaf in leaves(one.node, frame) if is_tensor(leaf.value)]
            lent = next((leaf for leaf in read if device_of(leaf.value) == one.device and shape_of(leaf.value)), None)
            if lent is not None:
                return f"{lent.text}.device"
        if (
            one.route is not None
            and one.route.frame is frame
            and is_tensor(one.route.value)
            and "…" not in one.route.text
        ):
            return f"{one.route.text}.device"
    return _of_module(frame, evidence.side.expected)


def _of_module(frame: UserFrame, expected: str) -> str | None:
    owner = frame.frame.f_locals.get("self")
    if not is_module(owner):
        return None
    return "next(self.parameters()).device" if devices_of_parameters(owner) == {expected} else None


def _of_self(function: Function, line: int) -> str | None:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and node.lineno < line:
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr == "device":
                    return ast.unparse(target)
    return None


def is_device(value: Any, expected: str) -> bool:
    """Whether `value`, a string or a `torch.device`, names the device `expected`; "cuda" names the first one."""
    if type(value) is not str and not is_torch_device(value):
        return False
    text = str(value)
    return text == expected or (":" not in text and expected == f"{text}:0")


def _is_bound(frame: UserFrame, name: str, line: int) -> bool:
    if name.startswith("_"):
        return False
    binding = binding_of(name, frame, line + 1)
    if binding is None:
        return name in frame.frame.f_globals or name in frame.frame.f_code.co_varnames[: frame.frame.f_code.co_argcount]
    return binding.line < line


def moves_by_cuda(source: Source) -> bool:
    """Whether the file moves with `.cuda()` and knows no other word for its device."""
    text = "".join(source.lines)
    return ".cuda()" in text and ".to(" not in text
