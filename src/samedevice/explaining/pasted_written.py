"""Operands whose device is written in the line: `x + torch.zeros(3)`, `x + self.pe.cuda()`.

For messages that name two devices and no argument, and lines of one operation: in others it may have been another.
"""

from __future__ import annotations

import ast

from samedevice.explaining.mending.edits import enclosed, replace_node, with_keyword
from samedevice.explaining.pasted_reading import Guess, Pasted, device_of_text, devices_met
from samedevice.explaining.syntax import call_name, is_move, keyword, moved_device
from samedevice.explaining.vocabulary import FACTORIES
from samedevice.findings import Edit
from samedevice.texts import say

__all__ = ["by_written_device", "is_made_without_device"]

_LEGACY = (
    *("Tensor", "FloatTensor", "LongTensor", "BoolTensor", "IntTensor", "DoubleTensor", "ByteTensor", "HalfTensor"),
    "from_numpy",
)
"""Functions of torch that make a tensor on the CPU whatever the default device is."""


def by_written_device(pasted: Pasted) -> Guess | None:
    """The operand that is in the wrong place, where the line writes the device of one.

    Args:
        pasted: what the text gives to go on.
    """
    devices, operands = devices_met(pasted.recognised), _operands(pasted.node)
    if devices is None or len(operands) != 2 or not pasted.is_direct:
        return None
    if "cpu" in devices:
        return _beside_cpu(pasted, operands, next(device for device in devices if device != "cpu"))
    return _between_accelerators(pasted, operands, devices)


def _operands(node: ast.AST) -> list[ast.expr]:
    """Both sides of the one operation of the line; empty where another one may have failed instead."""
    found = [each for inner in ast.walk(node) if (each := _sides(inner)) and not any(map(_is_number, each))]
    if len(found) != 1 or len(found[0]) != 2:
        return []
    calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    return [] if any(_may_fail(call) for call in calls) else found[0]


def _sides(node: ast.AST) -> list[ast.expr]:
    """What an operator stands between; empty for any other node."""
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    return [node.left, *node.comparators] if isinstance(node, ast.Compare) else []


def _is_number(node: ast.expr) -> bool:
    """Whether it is written as a number, which joins any device."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def _may_fail(call: ast.Call) -> bool:
    """Whether the call may be an operation of several tensors that leaves no frame of its own."""
    if _written(call) is not None:
        return False
    given = [*call.args, *(word.value for word in call.keywords)]
    if isinstance(call.func, ast.Name):
        return len(given) > 1  # `where(mask, a, b)`, imported; of one tensor none can be elsewhere
    of_self = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
    of_self = of_self and ast.unparse(call.func).startswith("self.")
    return not of_self and any(not isinstance(argument, ast.Constant | ast.UnaryOp) for argument in given)


def _beside_cpu(pasted: Pasted, operands: list[ast.expr], accelerator: str) -> Guess | None:
    written = [_written(operand) for operand in operands]
    for operand, other, device, facing in zip(operands, operands[::-1], written, written[::-1], strict=True):
        if device == "cpu" and facing != "cpu":
            return _left_on_cpu(pasted, operand, other, accelerator)
        if facing is not None and accelerator.startswith(facing) and device is None:
            return _met_by_move(pasted, operand, other, accelerator)
    return None


def _left_on_cpu(pasted: Pasted, operand: ast.expr, other: ast.expr, accelerator: str) -> Guess:
    """What the line itself makes on the CPU, or brings there."""
    device = device_of_text(pasted, other)
    name = pasted.source.text_of(operand)
    if isinstance(operand, ast.Call) and is_move(operand) and isinstance(operand.func, ast.Attribute):
        reason = say("the line itself brings it to {device}", device="cpu")
        text = f"{enclosed(pasted.source, operand.func.value)}.to({device})"
        edit = replace_node(pasted.source, operand, text) if device else None
        return Guess(name, "hardcoded-device", reason, fix=pasted.fix(edit), wrong="cpu", expected=accelerator)
    reason = say("it is made here without `device=`, so on the default device")
    edit = None
    if device and isinstance(operand, ast.Call):
        edit = (
            replace_node(pasted.source, operand, f"{enclosed(pasted.source, operand)}.to({device})")
            if call_name(operand) in _LEGACY
            else with_keyword(pasted.source, "device", device, operand)
        )
    return Guess(name, "factory-default-device", reason, fix=pasted.fix(edit), wrong="cpu", expected=accelerator)


def _met_by_move(pasted: Pasted, operand: ast.expr, other: ast.expr, accelerator: str) -> Guess | None:
    """What stays on the CPU beside an operand that the line moves or makes elsewhere."""
    moved = pasted.source.text_of(other)
    reason = say("{name} is on {device}, as the line itself says", name=moved, device=accelerator)
    edit = None
    if isinstance(other, ast.Call) and is_move(other) and isinstance(other.func, ast.Attribute):
        arguments = ", ".join(map(ast.unparse, [*other.args, *other.keywords]))
        text = f"{enclosed(pasted.source, operand)}.{other.func.attr}({arguments})"
        edit = replace_node(pasted.source, operand, text)
    return Guess(
        pasted.source.text_of(operand), "input-not-moved", reason, wrong="cpu", expected=accelerator,
        fix=pasted.fix(edit),
    )  # fmt: skip


def _between_accelerators(pasted: Pasted, operands: list[ast.expr], devices: tuple[str, str]) -> Guess | None:
    """Two accelerators, in the order of the operands: the one that a fixed move chose is the one in the wrong place."""
    if devices[0] == devices[1]:
        return None
    written = [_written(operand) for operand in operands]
    known = [at for at, device in enumerate(written) if device not in (None, "cpu")]
    if len(known) != 1 or "cpu" in written:
        return None
    at = known[0]
    device, expected = devices[at], devices[1 - at]
    if not device.startswith(written[at] or "") or not isinstance(operands[at], ast.Call):
        return None
    reason = say("its device is written in the line, and {expected} is in use there", expected=expected)
    if call_name(operands[at]) == "cuda" and written[at] == "cuda":
        reason = say("`.cuda()` without a number means the current CUDA device, wherever the other operand is")
    return Guess(
        pasted.source.text_of(operands[at]), "hardcoded-device", reason, wrong=device, expected=expected,
        fix=pasted.fix(_following(pasted, operands[at], operands[1 - at])),
    )  # fmt: skip


def _following(pasted: Pasted, move: ast.expr, other: ast.expr) -> Edit | None:
    """The edit that makes the move follow the other operand."""
    device = device_of_text(pasted, other)
    if (
        device is None
        or not isinstance(move, ast.Call)
        or not is_move(move)
        or not isinstance(move.func, ast.Attribute)
    ):
        return None
    return replace_node(pasted.source, move, f"{enclosed(pasted.source, move.func.value)}.to({device})")


def is_made_without_device(node: ast.expr) -> bool:
    """Whether the expression makes a tensor where nothing is told: `torch.zeros(3)`."""
    return isinstance(node, ast.Call) and not is_move(node) and _written(node) == "cpu" and not keyword(node, "device")


def _written(node: ast.expr) -> str | None:
    """The device that the expression names, e.g. "cuda:1", or its kind alone; None where it names none."""
    if not isinstance(node, ast.Call):
        return None
    if is_move(node) and isinstance(node.func, ast.Attribute):
        return _of_move(node, node.func.attr)
    of_torch = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in ("torch", "th")
    if not of_torch or any(word.arg is None for word in node.keywords):
        return None
    if call_name(node) in _LEGACY:
        return "cpu"
    if call_name(node) not in FACTORIES or call_name(node) == "scalar_tensor" or not node.args:
        return None  # a tensor of one number without dimensions joins any device
    if isinstance(node.args[0], ast.Tuple | ast.List) and not node.args[0].elts:
        return None
    device = keyword(node, "device")
    return "cpu" if device is None else _constant(device)


def _of_move(move: ast.Call, method: str) -> str | None:
    device = moved_device(move)
    if device is None:
        return method if method != "to" else None
    if isinstance(device, ast.Constant) and type(device.value) is int:
        return f"{'cuda' if method == 'to' else method}:{device.value}"
    return _constant(device)


def _constant(device: ast.expr) -> str | None:
    return device.value if isinstance(device, ast.Constant) and isinstance(device.value, str) else None
