"""`explain` for text: a pasted traceback, a log, one error line, in any language around it.

There are no live objects, so a name is given only where the message and the line of code together settle it, and a
cause only where the source, read from the file if it is here, shows it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass

from samedevice.causes import catalogue
from samedevice.explaining.sources import Source, read_source
from samedevice.explaining.syntax import arguments_of, call_name, undressed
from samedevice.explaining.tracebacks import PastedFrame, frames_in
from samedevice.explaining.vocabulary import LAYER_OPERATORS
from samedevice.findings import Culprit, Finding, Location, Operand, Raised
from samedevice.messages import Recognised, recognise
from samedevice.texts import say

__all__ = ["explain_text"]

_PREFIX = re.compile(r"(?m)^(?:\[rank\d+\]:|>) ?")
"""What torchrun and mail put before each line."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NAMELESS = ("common", "operand", "others")
"""What a message calls an operand that it does not name."""
_FAR = 100_000
"""How many characters before a message its traceback can begin; a log may hold thousands."""

_LAYERS = re.compile(r"torch[\\/]nn[\\/](modules|functional)")
"""The files whose frames end a traceback that a layer's own operation raised."""

_FROM_INPUT = ("mat1", "input", "index", "indices", "query", "batch1", "hidden", "self", "target", "lengths")
_FROM_MODULE = ("mat2", "weight", "bias", "running_mean", "running_var", "parameter", "qkv_weight", "batch2")


@dataclass(frozen=True, slots=True)
class _Guess:
    name: str
    slug: str
    reason: str
    line: int | None = None


def explain_text(text: str) -> Finding | None:
    """The device fault that `text` tells of.

    Args:
        text: anything with one of PyTorch's device messages in it; the last one counts.

    Returns:
        None where there is no such message.
    """
    text = _PREFIX.sub("", _COLOUR.sub("", text))
    recognised = recognise(text)
    if recognised is None or not recognised.certain:
        return None
    told = frames_in(text[max(0, recognised.start - _FAR) : recognised.start])
    frames = [frame for frame in told if frame.is_users]
    frames = frames or [frame for frame in frames_in(text[recognised.start :][:_FAR]) if frame.is_users]
    frame = frames[-1] if frames else None
    in_layer = bool(told) and _LAYERS.search(told[-1].file) is not None
    guess = (_guess(recognised, frame, in_layer) or _model(recognised, frames, in_layer)) if frame is not None else None
    return _finding(text, recognised, frame, guess)


def _finding(text: str, recognised: Recognised, frame: PastedFrame | None, guess: _Guess | None) -> Finding:
    slug = recognised.cause or (guess.slug if guess is not None else "other")
    message = text[recognised.start : recognised.end]
    wrong, expected = _sides(recognised)
    operator = recognised.operator
    name = guess.name if guess is not None else None
    culprit = None
    if name is not None and frame is not None:
        line = guess.line if guess is not None else None
        culprit = Culprit(name, frame.file if line is not None else None, line, wrong or None)
    sentence = (
        say("{name} is on {wrong}, expected on {expected}", name=name, wrong=wrong, expected=expected)
        if name and wrong and expected
        else message
    )
    return Finding(
        code=next(code for code, known in catalogue.SLUGS.items() if known == slug),
        cause=slug,
        message=sentence,
        location=_location(frame),
        raised=Raised(recognised.exception, message),
        operation=f"aten::{operator}" if operator is not None and "." not in operator else operator,
        culprit=culprit,
        expected_device=expected or None,
        operands=tuple(
            Operand(place, device, argument=place)
            for place, device in recognised.places.items()
            if place not in _NAMELESS
        ),
        reasons=(guess.reason,) if guess is not None else (),
    )


def _location(frame: PastedFrame | None) -> Location | None:
    if frame is None:
        return None
    return Location(
        frame.file, frame.line, frame.function, source=frame.code or read_source(frame.file).line(frame.line) or None
    )


def _sides(recognised: Recognised) -> tuple[str, str]:
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


def _guess(recognised: Recognised, frame: PastedFrame, in_layer: bool) -> _Guess | None:
    """The expression of the code line that is in the wrong place, where message and line settle it."""
    node, source = _parsed(frame)
    if node is None:
        return None
    wrong, _ = _sides(recognised)
    argument = next((name for name, device in recognised.places.items() if device == wrong and name != "others"), None)
    call = _layer_call(node) if in_layer or not _multiplies(node) else None
    if call is not None and argument is not None and _is_layer(recognised):
        if argument in _FROM_MODULE:
            name = source.text_of(call.func)
            return _Guess(name, "model-not-moved", say("its parameters are on {wrong}", wrong=wrong))
        if argument in _FROM_INPUT and call.args:
            inner = undressed(call.args[0])
            return _Guess(
                source.text_of(inner),
                "input-not-moved",
                say("the input is on {wrong}, the parameters are not", wrong=wrong),
            )
    return _plain_attribute(node, source, frame)


def _model(recognised: Recognised, frames: list[PastedFrame], in_layer: bool) -> _Guess | None:
    """The layer whose parameters are on the CPU and its input is not; where a line calls several, their model.

    The way out leads through methods called `forward`: whoever called the outermost of them has a name for the whole.
    """
    given = next((place for place in recognised.places if place in ("mat1", "input", "index")), None)
    if (
        given is None
        or not _is_layer(recognised)
        or _sides(recognised)[0] != "cpu"
        or recognised.places[given] == "cpu"
    ):
        return None
    outside = next((frame for frame in reversed(frames) if frame.function != "forward"), None)
    for frame in (frames[-1], outside):
        node, source = _parsed(frame) if frame is not None else (None, None)
        call = _layer_call(node) if node is not None else None
        if call is not None and source is not None:
            reason = say("its parameters are on {wrong}", wrong="cpu")
            return _Guess(source.text_of(call.func), "model-not-moved", reason)
    return None


def _multiplies(node: ast.AST) -> bool:
    """Whether the line itself asks for what a layer may ask for too: `x @ w`, `torch.mm(x, w)`, `F.linear(x, w)`."""
    return any(
        (isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.MatMult))
        or (isinstance(inner, ast.Call) and ast.unparse(inner.func).startswith(("torch.", "F.", "nn.functional.")))
        for inner in ast.walk(node)
    )  # fmt: skip


def _is_layer(recognised: Recognised) -> bool:
    """Whether the operator is one that a layer calls with its own parameters; a message without one may be."""
    return recognised.operator is None or recognised.operator.strip("_") in LAYER_OPERATORS


def _parsed(frame: PastedFrame) -> tuple[ast.AST | None, Source]:
    """The statement of the frame: from its file where that still holds the line, else from the pasted text."""
    source = read_source(frame.file)
    if source.lines and (not frame.code or source.line(frame.line) == frame.code):
        return source.statement_at(frame.line), source
    code = textwrap.dedent(frame.code)
    try:
        tree = ast.parse(code.removesuffix(":") if not code.endswith(":") else code + " pass")
    except SyntaxError:
        return None, source
    return (tree.body[0] if tree.body else None), Source(frame.file, (code,), tree)


def _layer_call(node: ast.AST) -> ast.Call | None:
    """The innermost-last call of something that may be a module: `self.fc(x)`, `model(x)`."""
    calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    layers = [call for call in calls if _may_be_module(call.func)]
    return layers[0] if len(layers) == 1 else None


def _may_be_module(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id == "self"
    return isinstance(function, ast.Name) and not function.id[:1].isupper() and function.id not in dir(__builtins__)


def _plain_attribute(node: ast.AST, source: Source, frame: PastedFrame) -> _Guess | None:
    """`self.pe` of a class whose source assigns it a tensor without registering it."""
    definition = source.class_at(frame.line) if source.tree.body else None
    if definition is None:
        return None
    names = {
        inner.attr for _, argument in arguments_of(node) for inner in ast.walk(argument)
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id == "self"
    }  # fmt: skip
    for inner in ast.walk(definition):
        if not isinstance(inner, ast.Assign) or not isinstance(inner.targets[0], ast.Attribute):
            continue
        name = inner.targets[0].attr
        if name in names and _makes_tensor(inner.value, definition):
            reason = say("self.{name} is a plain attribute, so the module's `.to()` leaves it behind", name=name)
            if not _is_module_class(definition):
                reason = say("{name} is no module: nothing moves what it holds", name=definition.name)
            return _Guess(f"self.{name}", "plain-attribute", reason, inner.lineno)
    return None


def _is_module_class(definition: ast.ClassDef) -> bool:
    """Whether the class may be a module: it has a `forward`, or a base that may be one."""
    methods = {node.name for node in definition.body if isinstance(node, ast.FunctionDef)}
    return "forward" in methods or any(ast.unparse(base) != "object" for base in definition.bases)


def _makes_tensor(value: ast.expr, definition: ast.ClassDef) -> bool:
    """Whether the expression calls torch, itself or in a method of the class, and makes no parameter."""
    calls = [inner for inner in ast.walk(value) if isinstance(inner, ast.Call)]
    if any(call_name(call) in ("Parameter", "UninitializedParameter") for call in calls):
        return False
    called = {ast.unparse(call.func) for call in calls}
    returned = [
        each.value for method in definition.body
        if isinstance(method, ast.FunctionDef) and f"self.{method.name}" in called
        for each in ast.walk(method) if isinstance(each, ast.Return) and each.value is not None
    ]  # fmt: skip
    inner = [ast.unparse(call.func) for part in returned for call in ast.walk(part) if isinstance(call, ast.Call)]
    return any(function.startswith("torch.") for function in [*called, *inner])
