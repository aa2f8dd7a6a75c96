"""What a pasted text gives to go on: the message, the user's line of code as syntax, and the frames below it.

Shared by the rules of `pasted.py`; nothing is decided here.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass, replace

from samedevice.explaining.mending.edits import as_fix, enclosed
from samedevice.explaining.sources import Source, read_source
from samedevice.explaining.syntax import is_move
from samedevice.explaining.tracebacks import PastedFrame
from samedevice.findings import Edit, Fix
from samedevice.messages import Recognised

__all__ = [
    "NAMELESS",
    "Guess",
    "Pasted",
    "device_of_text",
    "devices_met",
    "is_plain",
    "moved",
    "named_argument",
    "read",
    "sides",
]

NAMELESS = ("common", "operand", "others")
"""What a message calls an operand that it does not name."""
_BODY = " pass"
"""What stands for the body of a compound statement, of which a traceback shows the first line."""
_OPEN = ("(", "[", "{", ",")
"""How the first line of a statement of several lines ends."""
_TORCH = re.compile(r"[\\/]torch[\\/]")
_TENSOR_METHODS = re.compile(r"[\\/]torch[\\/](_tensor|overrides|utils[\\/]_(device|contextlib))\.py$")
"""PyTorch's files that only hand an operation of the user's line on."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What message and line settle together."""

    name: str | None
    slug: str
    reason: str
    line: int | None = None
    """The line that left the tensor behind, where it is seen."""
    fix: Fix | None = None
    wrong: str = ""
    expected: str = ""
    """The devices, where the line tells more of them than the message alone."""
    message: str | None = None
    """The sentence, where no single tensor is on one device and expected on another."""


@dataclass(frozen=True, slots=True)
class Pasted:
    """The user's innermost line and what the text tells about it."""

    recognised: Recognised
    frame: PastedFrame
    node: ast.AST
    source: Source
    """The file where it is here and still holds the line, else the line alone."""
    below: tuple[PastedFrame, ...]
    """The library's frames that the line led to, innermost last."""

    @property
    def is_direct(self) -> bool:
        """Whether the operation that failed is written in the line itself."""
        return all(_TENSOR_METHODS.search(frame.file) for frame in self.below)

    @property
    def is_in_torch(self) -> bool:
        """Whether all that the line led to is PyTorch's own: nobody else's code stands between."""
        return all(_TORCH.search(frame.file) for frame in self.below)

    def fix(self, edit: Edit | None) -> Fix | None:
        """The mend that makes `edit`; where the file is not here, its line alone."""
        fix = as_fix(edit)
        is_here = self.source.file == self.frame.file and self.source.lines == read_source(self.frame.file).lines
        return fix if fix is None or is_here else replace(fix, summary=fix.summary.removesuffix(_BODY), edits=())


def read(recognised: Recognised, told: list[PastedFrame], frame: PastedFrame) -> Pasted | None:
    """What there is to go on.

    Args:
        recognised: the message, taken apart.
        told: all frames of the traceback, outermost first.
        frame: the user's innermost one.

    Returns:
        None where the line of code is not there or does not parse alone.
    """
    node, source = parsed(frame)
    below = tuple(told[told.index(frame) + 1 :]) if frame in told else ()
    return Pasted(recognised, frame, node, source, below) if node is not None else None


def parsed(frame: PastedFrame) -> tuple[ast.AST | None, Source]:
    """The statement of the frame: from its file where that still holds the line, else from the pasted text."""
    source = read_source(frame.file)
    here = source.line(frame.line)
    if source.lines and (
        not frame.code or here == frame.code or (here.endswith(_OPEN) and frame.code.startswith(here))
    ):
        return source.statement_at(frame.line), source
    code = textwrap.dedent(frame.code)
    code += _BODY if code.endswith(":") else ""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return None, source
    return (tree.body[0] if tree.body else None), Source(frame.file, (code,), tree)


def named_argument(recognised: Recognised) -> tuple[str, str] | None:
    """(argument, device) of the operand that the message names beside all others; None where it names none so."""
    if recognised.kind == "masked-fill-mask":
        return "mask", recognised.places["mask"]
    named = [(name, device) for name, device in recognised.places.items() if name not in NAMELESS and device]
    return named[0] if len(named) == 1 and "others" in recognised.places else None


def sides(recognised: Recognised) -> tuple[str, str]:
    """(wrong device, expected device): the CPU is wrong where an accelerator is the other side."""
    devices = recognised.devices
    if recognised.cause == "lengths-must-be-cpu" or recognised.cause == "numpy-on-cuda":
        return (devices[0] if devices else ""), "cpu"
    accelerators = [device for device in devices if device != "cpu"]
    if "cpu" in devices and accelerators:
        return "cpu", accelerators[0]
    if len(accelerators) > 1 and "others" in recognised.places:
        expected = recognised.places["others"]
        return next(device for device in accelerators if device != expected), expected
    return "", ""


def devices_met(recognised: Recognised) -> tuple[str, str] | None:
    """(first device, other device) of a message that says of no operand where it is."""
    common, other = recognised.places.get("common"), recognised.places.get("operand")
    return (common, other) if common and other else None


def device_of_text(pasted: Pasted, node: ast.expr) -> str | None:
    """`x.device`, where asking `node` for it calls nothing again."""
    return f"{pasted.source.text_of(node)}.device" if is_plain(node) else None


def is_plain(node: ast.expr) -> bool:
    """Whether the expression is a name, or a look-up by names and constants in one."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant | ast.Name):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def moved(pasted: Pasted, node: ast.expr, device: str) -> str:
    """The text of `node` brought to `device`: its own last move goes there instead, where it ends in one."""
    alone = isinstance(node, ast.Call) and len(node.args) + len(node.keywords) < 2 and is_move(node)
    if alone and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return f"{enclosed(pasted.source, node)}.to({device})"
