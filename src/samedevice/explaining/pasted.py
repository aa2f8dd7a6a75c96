"""`explain` for text: a pasted traceback, a log, one error line, in any language around it.

There are no live objects, so a name is given only where the message and the line of code together settle it, and a
cause only where the source, read from the file if it is here, shows it.
"""

from __future__ import annotations

import ast
import builtins
import re

from samedevice.causes import catalogue
from samedevice.explaining.mending.edits import replace_node
from samedevice.explaining.mending.mend import advice
from samedevice.explaining.pasted_arguments import by_argument
from samedevice.explaining.pasted_kinds import by_input_ids, by_kind, by_optimizer
from samedevice.explaining.pasted_reading import NAMELESS, Guess, Pasted, is_plain, moved, parsed, read, sides
from samedevice.explaining.pasted_written import by_written_device
from samedevice.explaining.sources import Source, read_source
from samedevice.explaining.syntax import arguments_of, call_name, undressed
from samedevice.explaining.tracebacks import PastedFrame, frames_in
from samedevice.explaining.vocabulary import LAYER_OPERATORS, LOSS
from samedevice.findings import Culprit, Finding, Fix, Location, Operand, Raised
from samedevice.messages import Recognised, recognise
from samedevice.texts import say

__all__ = ["explain_text"]

_PREFIX = re.compile(r"(?m)^(?:\[rank\d+\]:|>) ?")
"""What torchrun and mail put before each line."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FAR = 100_000
"""How many characters before a message its traceback can begin; a log may hold thousands."""

_LAYERS = re.compile(r"torch[\\/]nn[\\/](modules|functional)")
"""The files whose frames end a traceback that a layer's own operation raised."""

_FROM_INPUT = ("mat1", "input", "index", "indices", "query", "batch1", "self", "lengths")
_INPUT_FIRST = ("convolution", "cudnn_convolution", "batch_norm", "native_batch_norm", "native_layer_norm")
"""Operators whose first tensor is the layer's input."""
_CALLED = {
    "conv.py": re.compile("conv"),
    "linear.py": re.compile(r"linear|(^|_)(fc|lin)(\d|_|$)"),
    "sparse.py": re.compile("emb"),
    "batchnorm.py": re.compile(r"norm|bn"),
}
"""How layers of a file are called in most programs; tells apart those of `self.bn1(self.conv1(x))`."""
_WEIGHTED_FILES = {"linear.py", "conv.py", "sparse.py"}
"""Where the layers are defined that always have a weight."""
_FROM_MODULE = ("mat2", "weight", "bias", "running_mean", "running_var", "parameter", "qkv_weight", "batch2")


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
    pasted = read(recognised, told, frame) if frame is not None else None
    guess = _settled(pasted, frames) if pasted is not None else None
    return _finding(text, recognised, frame, guess)


def _settled(pasted: Pasted, frames: list[PastedFrame]) -> Guess | None:
    """What the first rule that applies says; the surest come first."""
    return (
        by_kind(pasted)
        or by_optimizer(pasted)
        or by_argument(pasted)
        or by_input_ids(pasted)
        or _of_layer(pasted)
        or _plain_attribute(pasted.node, pasted.source, pasted.frame)
        or _model(pasted, frames)
        or by_written_device(pasted)
    )


def _finding(text: str, recognised: Recognised, frame: PastedFrame | None, guess: Guess | None) -> Finding:
    slug = recognised.cause or (guess.slug if guess is not None else "other")
    message = text[recognised.start : recognised.end]
    wrong, expected = sides(recognised)
    if guess is not None and guess.wrong:
        wrong, expected = guess.wrong, guess.expected
    operator = recognised.operator
    name = guess.name if guess is not None else None
    culprit = None
    if guess is not None and name is not None and frame is not None:
        culprit = Culprit(
            name,
            frame.file if guess.line is not None else None,
            guess.line,
            wrong if wrong and guess.message is None else None,
        )
    sentence = guess.message if guess is not None else None
    if sentence is None and name and wrong and expected:
        sentence = say("{name} is on {wrong}, expected on {expected}", name=name, wrong=wrong, expected=expected)
    return Finding(
        code=next(code for code, known in catalogue.SLUGS.items() if known == slug),
        cause=slug,
        message=sentence or message,
        location=_location(frame),
        raised=Raised(recognised.exception, message),
        operation=f"aten::{operator}" if operator is not None and "." not in operator else operator,
        culprit=culprit,
        expected_device=expected or None,
        operands=tuple(
            Operand(place, device, argument=place)
            for place, device in recognised.places.items()
            if place not in NAMELESS
        ),
        reasons=(guess.reason,) if guess is not None else (),
        fix=guess.fix if guess is not None and guess.fix is not None else advice(slug),
    )


def _location(frame: PastedFrame | None) -> Location | None:
    if frame is None:
        return None
    return Location(
        frame.file, frame.line, frame.function, source=frame.code or read_source(frame.file).line(frame.line) or None
    )


def _of_layer(pasted: Pasted) -> Guess | None:
    """The layer or the input of a line that calls one layer, where the message says which of them is where."""
    node, source, recognised = pasted.node, pasted.source, pasted.recognised
    wrong, _ = sides(recognised)
    in_layer = bool(pasted.below) and _LAYERS.search(pasted.below[-1].file) is not None
    call = _layer_call(node, _kind_of_layer(pasted)) if in_layer or not _multiplies(node) else None
    if call is None or not wrong or not _is_layer(recognised) or LOSS.search(call_name(call)):
        return None
    argument = next((name for name, device in recognised.places.items() if device == wrong and name != "others"), None)
    if argument in _FROM_MODULE:
        name = source.text_of(call.func)
        reason = say("its parameters are on {wrong}", wrong=wrong)
        return Guess(name, "model-not-moved", reason, fix=_moved_before(pasted, call, pasted.frame))
    if wrong != "cpu" and any(frame.file.endswith("container.py") for frame in pasted.below):
        return None  # a model in parts: the layer's input may be what another part made
    is_input = argument in _FROM_INPUT or (argument is None and _comes_after_input(recognised))
    if not is_input or not call.args or isinstance(call.args[0], ast.Starred):
        return None
    inner = undressed(call.args[0])
    fix = pasted.fix(replace_node(source, inner, moved(pasted, inner, _place_of(pasted, call))))
    reason = say("the input is on {wrong}, the parameters are not", wrong=wrong)
    return Guess(source.text_of(inner), "input-not-moved", reason, fix=fix)


def _comes_after_input(recognised: Recognised) -> bool:
    """Whether the message says that a layer's weight is not where its input is, which the operator looked at first."""
    if "others" not in recognised.places:
        return False
    return "weight" in recognised.places and (
        recognised.values.get("index") == "2" or (recognised.operator or "").strip("_") in _INPUT_FIRST
    )


def _place_of(pasted: Pasted, call: ast.Call) -> str:
    """The device of what is called: of its weight where the traceback goes to such a layer directly."""
    name = pasted.source.text_of(call.func)
    files = {re.split(r"[\\/]", frame.file)[-1] for frame in pasted.below if _LAYERS.search(frame.file)}
    direct = files - {"module.py", "functional.py"}
    is_one = len(direct) == 1 and direct <= _WEIGHTED_FILES and pasted.is_in_torch
    return f"{name}.weight.device" if is_one else f"next({name}.parameters()).device"


def _moved_before(pasted: Pasted, call: ast.Call, frame: PastedFrame) -> Fix | None:
    """The line that brings what is called to its input, where that is a name; a part moves with its model."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name and pasted.recognised.kind == "data-parallel" and (first := sides(pasted.recognised)[1]):
        return Fix(say("{code}  (once, before line {line})", code=f'{name}.to("{first}")', line=frame.line))
    argument = call.args[0] if call.args else None
    if argument is None or not is_plain(argument) or not name:
        return None
    code = f"{name}.to({ast.unparse(argument)}.device)"
    return Fix(say("{code}  (once, before line {line})", code=code, line=frame.line))


def _model(pasted: Pasted, frames: list[PastedFrame]) -> Guess | None:
    """The layer whose parameters are on the CPU and its input is not; where a line calls several, their model.

    The way out leads through methods called `forward`: whoever called the outermost of them has a name for the whole.
    """
    recognised = pasted.recognised
    given = next((place for place in recognised.places if place in ("mat1", "input", "index")), None)
    if given is None or not _is_layer(recognised) or sides(recognised)[0] != "cpu" or recognised.places[given] == "cpu":
        return None
    outside = next((frame for frame in reversed(frames) if frame.function != "forward"), None)
    for frame in (frames[-1], outside):
        node, source = parsed(frame) if frame is not None else (None, None)
        call = _layer_call(node) if node is not None else None
        if call is not None and source is not None:
            reason = say("its parameters are on {wrong}", wrong="cpu")
            fix = _moved_before(pasted, call, frame) if frame is not None else None
            return Guess(source.text_of(call.func), "model-not-moved", reason, fix=fix)
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


def _layer_call(node: ast.AST, kind: re.Pattern[str] | None = None) -> ast.Call | None:
    """The one call of something that may be a module: `self.fc(x)`, `model(x)`; of several, the one of that kind."""
    calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    layers = [call for call in calls if _may_be_module(call.func)]
    if len(layers) > 1 and kind is not None:
        layers = [call for call in layers if kind.search(call_name(call).lower())]
    return layers[0] if len(layers) == 1 else None


def _kind_of_layer(pasted: Pasted) -> re.Pattern[str] | None:
    """What a layer is called whose file the line led to, and no other module's."""
    files = {re.split(r"[\\/]", frame.file)[-1] for frame in pasted.below} - {"module.py", "functional.py"}
    return _CALLED.get(files.pop()) if len(files) == 1 and pasted.is_in_torch else None


def _may_be_module(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id == "self"
    return isinstance(function, ast.Name) and not function.id[:1].isupper() and not hasattr(builtins, function.id)


def _plain_attribute(node: ast.AST, source: Source, frame: PastedFrame) -> Guess | None:
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
            return Guess(f"self.{name}", "plain-attribute", reason, inner.lineno)
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
