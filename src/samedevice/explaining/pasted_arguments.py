"""Which expression of the user's line is the operator's argument that a message names, and where the others are.

PyTorch's wrappers look at an operator's tensors in the order of its signature: those before the one that the message
names are on the other device. Where the line's call has the same signature, or is a loss, that names expressions.
Whatever the line leaves open stays unnamed.
"""

from __future__ import annotations

import ast
import re

from samedevice.explaining.mending.edits import replace_node
from samedevice.explaining.pasted_reading import Guess, Pasted, device_of_text, is_plain, moved, named_argument, sides
from samedevice.explaining.pasted_written import is_made_without_device
from samedevice.explaining.syntax import call_name, keyword
from samedevice.explaining.vocabulary import LOSS
from samedevice.findings import Fix
from samedevice.texts import say

__all__ = ["by_argument"]

_LIBRARY = re.compile(r"(torch|F|nn\.functional|torch\.nn\.functional|torchvision\.ops)")
_LOSS_FILE = re.compile(r"[\\/]torch[\\/]nn[\\/](modules[\\/]loss|functional)\.py$")
_LOSS_PARTS = ("self input log_probs", "target targets", "weight")

# Function -> (operators that it calls, its parameters by the names that those have for them; "-" for no tensor).
_WEIGHTED = "mat1 input", "mat2 weight", "self bias"
_MOVING = "self", "-", "index", "src source value"
_FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "linear": ("addmm mm linear", _WEIGHTED),
    "conv1d": ("convolution cudnn_convolution", ("input", "weight", "bias")),
    "conv2d": ("convolution cudnn_convolution slow_conv2d_forward", ("input", "weight", "bias")),
    "conv3d": ("convolution cudnn_convolution", ("input", "weight", "bias")),
    "embedding": ("embedding index_select", ("index indices", "self weight")),
    "mm": ("mm", ("self", "mat2")),
    "bmm": ("bmm", ("self", "mat2")),
    "mv": ("mv addmv", ("self", "vec")),
    "dot": ("dot", ("self", "tensor")),
    "addmm": ("addmm", ("self", "mat1", "mat2")),
    "baddbmm": ("baddbmm", ("self", "batch1", "batch2")),
    "gather": ("gather", _MOVING[:3]),
    "index_select": ("index_select", _MOVING[:3]),
    "scatter": ("scatter", _MOVING),
    "scatter_add": ("scatter_add", _MOVING),
    "scatter_reduce": ("scatter_reduce", _MOVING),
    "index_add": ("index_add", _MOVING),
    "index_copy": ("index_copy", _MOVING),
    "index_fill": ("index_fill", _MOVING),
    "masked_fill": ("masked_fill", ("self", "mask", "value")),
    "masked_select": ("masked_select", ("self", "mask")),
    "masked_scatter": ("masked_scatter", ("self", "mask", "source")),
    "take": ("take", ("self", "index")),
    "bucketize": ("bucketize", ("self", "boundaries")),
    "searchsorted": ("searchsorted", ("sorted_sequence", "self")),
    "grid_sample": ("grid_sampler_2d grid_sampler_3d cudnn_grid_sampler", ("input", "grid")),
    "roi_align": ("roi_align", ("input", "rois")),
    "nms": ("nms", ("dets", "scores")),
}
_ORDER = {"linear": (2, 0, 1), "embedding": (1, 0)}
"""In which order the operator has a function's parameters, where that is another one."""
_JOINING = ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack")
_OF_KIND = {"masked-fill-mask": "masked_fill"}
_FUNCTIONAL_LOSSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "ctc_loss", "multi_margin_loss")
_INDICES = ("index", "indices")


def by_argument(pasted: Pasted) -> Guess | None:
    """The expression that is in the wrong place, where the message names an argument and the line has it.

    Args:
        pasted: what the text gives to go on.
    """
    named = named_argument(pasted.recognised)
    wrong, _ = sides(pasted.recognised)
    if named is None or not wrong or not pasted.is_in_torch:
        return None
    return _of_loss(pasted, named) or _of_list(pasted, named) or _of_function(pasted, named)


def _of_loss(pasted: Pasted, named: tuple[str, str]) -> Guess | None:
    call = _loss_call(pasted)
    place = _place_of(named[0], _LOSS_PARTS)
    if call is None or place is None:
        return None
    parts: list[ast.expr | None] = [_argument(call, 0, "input"), _argument(call, 1, "target")]
    weight = keyword(call, "weight")
    if place == 2 and weight is None:
        return None if _is_functional(call.func) else _criterion(pasted, call, named[1], parts[0])
    return _judged(pasted, named, [*parts, weight], place, (0, 1, 2))


def _criterion(pasted: Pasted, call: ast.Call, device: str, first: ast.expr | None) -> Guess | None:
    """The loss whose own weights stayed behind; its constructor got them, so it is the loss that is to move."""
    wrong, expected = sides(pasted.recognised)
    if device != wrong:
        return None
    name = pasted.source.text_of(call.func)
    fix = None
    if first is not None and is_plain(first):
        code = f"{name}.to({pasted.source.text_of(first)}.device)"
        fix = Fix(say("{code}  (once, before line {line})", code=code, line=pasted.frame.line))
    reason = say("its own weight is on {wrong}, what it is given is on {expected}", wrong=wrong, expected=expected)
    return Guess(name, "criterion-not-moved", reason, fix=fix)


def _loss_call(pasted: Pasted) -> ast.Call | None:
    """The one call of the line that is a loss: by its name, or since the traceback goes on in PyTorch's losses."""
    operator = pasted.recognised.operator or ("loss" if "target" in pasted.recognised.places else "")
    if "loss" not in operator and "cross_entropy" not in operator:
        return None
    calls = [
        node for node in ast.walk(pasted.node) if isinstance(node, ast.Call) and len([*node.args, *node.keywords]) > 1
    ]
    named = [call for call in calls if LOSS.search(call_name(call)) or "cross_entropy" in call_name(call)]
    if not named and any(_LOSS_FILE.search(frame.file) for frame in pasted.below):
        named = calls
    return named[0] if len(named) == 1 else None


def _of_function(pasted: Pasted, named: tuple[str, str]) -> Guess | None:
    operator = _OF_KIND.get(pasted.recognised.kind) or (pasted.recognised.operator or "").strip("_")
    found = [
        (name, node) for node in ast.walk(pasted.node)
        if isinstance(node, ast.Call) and (name := call_name(node).rstrip("_")) in _FUNCTIONS
        and operator in _FUNCTIONS[name][0].split()
    ]  # fmt: skip
    if len(found) != 1:
        return None
    name, call = found[0]
    parameters = _FUNCTIONS[name][1]
    place = _place_of(named[0], parameters)
    if place is None:
        return None
    order = _ORDER.get(name, tuple(range(len(parameters))))
    given = [*([] if _is_function(call) else [_receiver(call)]), *call.args]
    parts = [given[at] if at < len(given) and not _is_spread(given) else None for at in range(len(parameters))]
    parts = [part or _keyword(call, words) for part, words in zip(parts, parameters, strict=True)]
    tensors = tuple(at for at in order if parameters[at] != "-")
    return _judged(pasted, named, parts, place, tensors)


def _judged(
    pasted: Pasted, named: tuple[str, str], parts: list[ast.expr | None], place: int, order: tuple[int, ...]
) -> Guess | None:
    """Who is wrong: the named one, or the only one that the operator looked at before."""
    wrong, expected = sides(pasted.recognised)
    before = [parts[at] for at in order[: order.index(place)] if at < len(parts)]
    before = [part for part in before if part is not None]
    if named[1] == wrong:
        culprit, right = parts[place], (before or [None])[0]
    else:
        culprit, right = (before[0] if len(before) == 1 else None), parts[place]
    if culprit is None:
        return None
    name, argument = pasted.source.text_of(culprit), named[0] if culprit is parts[place] else ""
    reason = (
        say("the operator's argument {argument} is {name}", argument=argument, name=name)
        if argument
        else say("{other}, which it is used with, is on {expected}", other=_text(pasted, right), expected=expected)
    )
    fix = None
    if right is not None and (device := device_of_text(pasted, right)):
        edit = replace_node(pasted.source, culprit, moved(pasted, culprit, device))
        fix = pasted.fix(edit)
    return Guess(name, _slug(pasted, culprit, argument), reason, fix=fix)


def _text(pasted: Pasted, node: ast.expr | None) -> str:
    return pasted.source.text_of(node) if node is not None else ""


def _slug(pasted: Pasted, culprit: ast.expr, argument: str) -> str:
    """The cause as far as the expression shows it: why an attribute is where it is, its line does not say."""
    if is_made_without_device(culprit):
        return "factory-default-device"
    if argument in _INDICES and not _is_input(pasted):
        return "index-device"
    return "other" if pasted.source.text_of(culprit).startswith("self.") else "input-not-moved"


def _of_list(pasted: Pasted, named: tuple[str, str]) -> Guess | None:
    """Of `torch.cat((a, b))`, the named one is the second: the first is what it was compared with."""
    calls = [node for node in ast.walk(pasted.node) if isinstance(node, ast.Call) and call_name(node) in _JOINING]
    if (pasted.recognised.operator or "").strip("_") != "cat" or len(calls) != 1 or not calls[0].args:
        return None
    parts = calls[0].args[0]
    if not isinstance(parts, ast.List | ast.Tuple) or _is_spread(parts.elts) or len(parts.elts) != 2:
        return None
    return _judged(pasted, named, list(parts.elts), 1, (0, 1))


def _is_input(pasted: Pasted) -> bool:
    return any(isinstance(node, ast.Call) and call_name(node) == "embedding" for node in ast.walk(pasted.node))


def _place_of(argument: str, parameters: tuple[str, ...]) -> int | None:
    return next((at for at, words in enumerate(parameters) if argument in words.split()), None)


def _argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    plain = call.args[: place + 1]
    if len(plain) > place and not _is_spread(plain):
        return plain[place]
    return keyword(call, name)


def _keyword(call: ast.Call, words: str) -> ast.expr | None:
    return next((found for word in words.split() if (found := keyword(call, word)) is not None), None)


def _is_spread(arguments: list[ast.expr]) -> bool:
    return any(isinstance(argument, ast.Starred) for argument in arguments)


def _is_library(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and _LIBRARY.fullmatch(ast.unparse(function.value)) is not None


def _is_functional(function: ast.expr) -> bool:
    """Whether it is a function of torch.nn.functional, which has no weight of its own."""
    return _is_library(function) or (isinstance(function, ast.Name) and function.id in _FUNCTIONAL_LOSSES)


def _is_function(call: ast.Call) -> bool:
    return _is_library(call.func) or isinstance(call.func, ast.Name)


def _receiver(call: ast.Call) -> ast.expr:
    return call.func.value if isinstance(call.func, ast.Attribute) else call.func
