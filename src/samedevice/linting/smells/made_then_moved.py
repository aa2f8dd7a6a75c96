"""SD306: a tensor that is made on the CPU and moved at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.findings import Fix
from samedevice.linting import edits
from samedevice.linting.devices.method_tables import MOVES
from samedevice.linting.smells.moves import is_move, keyword, target_of
from samedevice.linting.smells.scan import Scan, Seen, Smell
from samedevice.texts import say

_COMPUTED = ("arange", "empty", "eye", "full", "hann_window", "hamming_window", "linspace", "logspace", "ones", "zeros")
_GIVEN = ("tensor", "as_tensor")
_RANDOM = ("rand", "randn", "randint", "randperm", "normal")
_EXACT = ("contiguous", "expand", "flatten", "int", "long", "repeat", "reshape", "squeeze", "unsqueeze", "view")
"""Methods between making and moving whose results are the same on every device."""


def _check(scan: Scan) -> Iterator[Seen]:
    for call in scan.calls():
        if not is_move(call) or not isinstance(call.func, ast.Attribute):
            continue
        made = _made(scan, call.func.value)
        if made is None:
            continue
        name = scan.qualified(made.func)
        device = _device(scan, call)
        yield (
            call,
            say("`{name}` fills memory of the CPU only to copy it; make the tensor there", name=name),
            (_fix(scan, call, made, device, safe=name.rpartition(".")[2] not in _RANDOM) if device else None),
        )


def _made(scan: Scan, node: ast.expr) -> ast.Call | None:
    """The factory call below a chain of methods; None where it names its device or its memory."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _EXACT
        and not scan.qualified(node.func)
    ):
        node = node.func.value
    if not isinstance(node, ast.Call):
        return None
    module, _, name = scan.qualified(node.func).rpartition(".")
    if module != "torch" or name not in (*_COMPUTED, *_GIVEN, *_RANDOM):
        return None
    # A generator is bound to a device; a leaf would stay behind; pinned memory is made to be copied from.
    special = ("device", "generator", "requires_grad", "pin_memory", "out")
    if any(each.arg in (None, *special) for each in node.keywords):
        return None
    if any(isinstance(each, ast.Starred) for each in node.args):
        return None
    return node if name not in _GIVEN or _is_data(node) else None


def _is_data(call: ast.Call) -> bool:
    """Whether the factory is given numbers or lists; an array or tensor may live anywhere."""
    first = call.args[0] if call.args else keyword(call, "data")
    return isinstance(first, ast.List | ast.Tuple | ast.ListComp | ast.Constant | ast.UnaryOp | ast.BinOp)


def _device(scan: Scan, call: ast.Call) -> str | None:
    """The device as text, where the move says nothing but that."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in MOVES:
        return None if call.args or call.keywords else f'"{call.func.attr}"'
    target = target_of(call)
    alone = len(call.args) + len(call.keywords) == 1
    return scan.source.segment(target) if target is not None and alone else None


def _fix(scan: Scan, call: ast.Call, made: ast.Call, device: str, *, safe: bool) -> Fix | None:
    assert isinstance(call.func, ast.Attribute)
    source = scan.source
    last = max((source.span(each)[1] for each in (*made.args, *(part.value for part in made.keywords))), default=None)
    if last is None:
        return None
    # Both changes in one edit: the keyword goes behind the last argument, the move goes away.
    keyword_text = f", device={device}"
    kept = source.segment(call.func.value)
    offset = _offset(source.span(call.func.value)[0], last, kept)
    text = kept[:offset] + keyword_text + kept[offset:]
    return Fix(f"device={device}", (edits.replace(source, call, text),), safe=safe)


def _offset(start: tuple[int, int], end: tuple[int, int], text: str) -> int:
    """Where the place `end` is in the text that begins at `start`."""
    lines = text.split("\n")
    before = sum(len(line) + 1 for line in lines[: end[0] - start[0]])
    return before + end[1] - (start[1] if end[0] == start[0] else 0)


SMELL = Smell("SD306", "made-then-moved", _check)
