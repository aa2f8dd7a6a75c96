"""What particular messages say about the user's line: an index, lengths, NumPy, a checkpoint, a wrapper, an optimizer.

Each rule looks for the one expression that its message can mean; where the line has two of them it says nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from samedevice.explaining.mending.edits import enclosed, replace_node, with_keyword
from samedevice.explaining.pasted_reading import Guess, Pasted, device_of_text, is_plain, named_argument, sides
from samedevice.explaining.pasted_written import is_made_without_device
from samedevice.explaining.syntax import call_name, keyword, undressed
from samedevice.explaining.vocabulary import DRESSINGS
from samedevice.findings import Fix
from samedevice.texts import say

__all__ = ["by_input_ids", "by_kind", "by_optimizer"]

_OPTIMIZER_FILE = re.compile(r"[\\/]torch[\\/]optim[\\/](?!lr_scheduler|swa_utils)\w+\.py$")
_STATE = re.compile(
    r"\b(device_)?(max_)?(exp_avgs?(_sqs?)?|exp_infs?|square_avgs?|acc_deltas?|grad_avgs?|momentum_buffer(_list|s)?|"
    r"bufs?|state_sums?|state_steps|prevs?|mus|axs)\b"
)
"""What optimizers call the tensors of their state, in the code of their steps and in the operators that fuse them."""


def by_kind(pasted: Pasted) -> Guess | None:
    """What the kind of the message settles about the line.

    Args:
        pasted: what the text gives to go on.
    """
    rule = _RULES.get(pasted.recognised.kind)
    return rule(pasted) if rule is not None else None


def by_optimizer(pasted: Pasted) -> Guess | None:
    """The state of the optimizer whose `step` the line calls, where the traceback ends in code that reads it."""
    steps = [frame for frame in pasted.below if _OPTIMIZER_FILE.search(frame.file) or frame.function == "step"]
    named = named_argument(pasted.recognised)
    fused = named is not None and "fused" in (pasted.recognised.operator or "") and _STATE.fullmatch(named[0])
    if not fused and not any(_STATE.search(frame.code) for frame in steps):
        return None
    name = _stepped(pasted.node, pasted)
    if name is None:
        return Guess(None, "optimizer-state", _WHERE_STATE_IS)
    code = f"{name}.load_state_dict({name}.state_dict())"
    fix = Fix(say("{code}  (once, before line {line})", code=code, line=pasted.frame.line))
    message = say("the state of {name} is not on the device of its parameters", name=name)
    return Guess(f"{name}.state", "optimizer-state", _WHERE_STATE_IS, fix=fix, message=message)


_WHERE_STATE_IS = say("its step failed where it reads its state, which no `.to()` of the model moves")


def _stepped(node: ast.AST, pasted: Pasted) -> str | None:
    """The optimizer's name: of `optimizer.step()`, or of `scaler.step(optimizer)`."""
    calls = [
        inner for inner in ast.walk(node)
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "step"
    ]  # fmt: skip
    if len(calls) != 1 or not isinstance(calls[0].func, ast.Attribute):
        return None
    through = [frame for frame in pasted.below if "grad_scaler" in frame.file]
    if through:
        return pasted.source.text_of(calls[0].args[0]) if calls[0].args else None
    return pasted.source.text_of(calls[0].func.value)


def _index(pasted: Pasted) -> Guess | None:
    found = [
        (node, part) for node in ast.walk(pasted.node) if isinstance(node, ast.Subscript)
        for part in (node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]) if _may_index(part)
    ]  # fmt: skip
    if len(found) != 1 or not pasted.is_direct:
        return None
    indexed, index = found[0]
    device = pasted.recognised.places.get("self", "")
    base = device_of_text(pasted, indexed.value)
    text = enclosed(pasted.source, index)
    moved = f"{text}.cpu()" if device == "cpu" else f"{text}.to({base})" if base is not None else None
    fix = pasted.fix(replace_node(pasted.source, index, moved)) if moved is not None else None
    name, owner = pasted.source.text_of(index), pasted.source.text_of(indexed.value)
    return Guess(
        name,
        "index-device",
        say("{owner}, which it indexes, is on {device}", owner=owner, device=device),
        fix=fix,
        message=say("{name} is not on {device}, where {owner} is", name=name, device=device, owner=owner),
    )


def _may_index(part: ast.expr) -> bool:
    """Whether the part of a subscript may be a tensor; a number, a slice and an ellipsis are none."""
    return not isinstance(part, ast.Constant | ast.Slice | ast.UnaryOp | ast.JoinedStr | ast.List) or (
        isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Invert)
    )


def _value(pasted: Pasted) -> Guess | None:
    """What `table[index] = value` writes."""
    node, places = pasted.node, pasted.recognised.places
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Subscript):
        return None
    value, table = node.value, node.targets[0].value
    if not pasted.is_direct or any(isinstance(inner, ast.Subscript) for inner in ast.walk(value)):
        return None
    device = device_of_text(pasted, table)
    edit = replace_node(pasted.source, value, f"{enclosed(pasted.source, value)}.to({device})") if device else None
    reason = say("{owner}, which it is written into, is on {device}", owner=ast.unparse(table), device=places["self"])
    return Guess(
        pasted.source.text_of(value), "factory-default-device" if is_made_without_device(value) else "input-not-moved",
        reason, fix=pasted.fix(edit), wrong=places["values"], expected=places["self"],
    )  # fmt: skip


def _numpy(pasted: Pasted) -> Guess | None:
    """What is turned into an array: the receiver of `.numpy()`, or what NumPy is given."""
    found = [tensor for node in ast.walk(pasted.node) if (tensor := _converted(node)) is not None]
    if len(found) != 1:
        return None
    tensor = found[0]
    # What is detached already stays so; the copy comes before whatever else is done to it.
    moved = "cpu()" if "detach" in _methods(tensor) else "detach().cpu()"
    edit = replace_node(pasted.source, tensor, f"{enclosed(pasted.source, tensor)}.{moved}")
    name = pasted.source.text_of(undressed(tensor))
    return Guess(name, "numpy-on-cuda", say("NumPy reads the memory of the CPU alone"), fix=pasted.fix(edit))


def _methods(node: ast.expr) -> Iterator[str]:
    """The methods called one after another: "detach" and "view" of `x.view(-1).detach()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield node.func.attr
        node = node.func.value


def _converted(node: ast.AST) -> ast.expr | None:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr == "numpy" and not node.args:
        return node.func.value
    of_numpy = isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "numpy")
    # NumPy takes a list of tensors as well, and says the same of it: only a tensor's own method makes one certain.
    if of_numpy and len(node.args) == 1 and call_name(node.args[0]) in DRESSINGS:
        return node.args[0]
    return None


def _lengths(pasted: Pasted) -> Guess | None:
    found = [
        node for node in ast.walk(pasted.node)
        if isinstance(node, ast.Call) and call_name(node) == "pack_padded_sequence"
    ]  # fmt: skip
    if len(found) != 1:
        return None
    lengths = found[0].args[1] if len(found[0].args) > 1 else keyword(found[0], "lengths")
    if lengths is None:
        return None
    edit = replace_node(pasted.source, lengths, f"{enclosed(pasted.source, lengths)}.cpu()")
    reason = say("packing reads the lengths on the CPU, wherever the sequences are")
    return Guess(pasted.source.text_of(lengths), "lengths-must-be-cpu", reason, fix=pasted.fix(edit))


def _checkpoint(pasted: Pasted) -> Guess | None:
    """`torch.load` without `map_location`, which puts each tensor where it was saved."""
    loads = [
        node for node in ast.walk(pasted.node)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load"
    ]  # fmt: skip
    if len(loads) != 1 or len(loads[0].args) > 1 or keyword(loads[0], "map_location") is not None:
        return None
    if not pasted.is_in_torch or any(word.arg is None for word in loads[0].keywords):
        return None
    fix = pasted.fix(with_keyword(pasted.source, "map_location", '"cpu"', loads[0]))
    reason = say("without map_location, torch.load puts each tensor on the device that it was saved from")
    return Guess(None, "checkpoint-map-location", reason, fix=fix)


def _distributed(pasted: Pasted) -> Guess | None:
    """A module whose parameters are on the CPU, wrapped for a GPU."""
    values = pasted.recognised.values
    if "cpu" not in values.get("parameters_text", "") or "cuda" in values.get("parameters_text", ""):
        return None
    reason = say("device_ids names a GPU, and all parameters of the module are on {device}", device="cpu")
    calls = [
        node for node in ast.walk(pasted.node)
        if isinstance(node, ast.Call) and call_name(node) in ("DistributedDataParallel", "DDP") and node.args
    ]  # fmt: skip
    if len(calls) != 1:
        return Guess(None, "dataparallel-misplaced", reason)
    module, ids = calls[0].args[0], keyword(calls[0], "device_ids")
    only = ids.elts[0] if isinstance(ids, ast.List) and len(ids.elts) == 1 else None
    fix = None
    if only is not None:
        text = f"{enclosed(pasted.source, module)}.to({pasted.source.text_of(only)})"
        fix = pasted.fix(replace_node(pasted.source, module, text))
    name = pasted.source.text_of(module)
    return Guess(name, "dataparallel-misplaced", reason, fix=fix, wrong="cpu", expected="cuda")


def by_input_ids(pasted: Pasted) -> Guess | None:
    """What a language model is given, where the library's line passes `input_ids` or `labels` on as they are."""
    named, (wrong, _) = named_argument(pasted.recognised), sides(pasted.recognised)
    others = [frame for frame in pasted.below if not re.search(r"[\\/]torch[\\/]", frame.file)]
    if named is None or named[0] not in _GIVEN or named[1] != wrong or not others:
        return None
    parameter, passed_on = _GIVEN[named[0]]
    calls = [node for node in ast.walk(pasted.node) if isinstance(node, ast.Call) and (node.args or node.keywords)]
    if not passed_on.search(others[-1].code) or len(calls) != 1:
        return None
    call = calls[0]
    model = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "generate" else call.func
    spread = [word.value for word in call.keywords if word.arg is None]
    given = keyword(call, parameter) or (spread[0] if len(spread) == 1 else None)
    if given is None and parameter == "input_ids" and call.args:
        given = call.args[0]
    if given is None or isinstance(given, ast.Starred) or not is_plain(model) or not is_plain(given):
        return None
    name, device = pasted.source.text_of(given), f"{pasted.source.text_of(model)}.device"
    text = f"{name}.to({device})"
    if given in spread:
        text = f"{{key: value.to({device}) for key, value in {name}.items()}}"
    reason = say("the operator's argument {argument} is the model's {name}", argument=named[0], name=parameter)
    return Guess(name, "input-not-moved", reason, fix=pasted.fix(replace_node(pasted.source, given, text)))


_LOOKS_UP = re.compile(r"\(\s*input_ids\s*\)")
_GIVEN = {
    "index": ("input_ids", _LOOKS_UP),
    "indices": ("input_ids", _LOOKS_UP),
    "target": ("labels", re.compile(r"loss\w*\(.*,\s*labels(\.view\(-1\))?\s*[,)]")),
}
"""Operator's argument -> the model's parameter, and how a library's line passes that on as it is."""


def _hidden(pasted: Pasted) -> Guess | None:
    """The state that a recurrent layer is given beside its input."""
    calls = [node for node in ast.walk(pasted.node) if isinstance(node, ast.Call) and len(node.args) == 2]
    if len(calls) != 1 or pasted.recognised.places.get("hidden") != sides(pasted.recognised)[0]:
        return None
    given, state = calls[0].args
    if isinstance(state, ast.Starred):
        return None
    # Input and parameters have to be on one device as well, so theirs does where the input has no name.
    device = device_of_text(pasted, given) or f"next({pasted.source.text_of(calls[0].func)}.parameters()).device"
    moved = _moved_state(pasted, state, device)
    edit = replace_node(pasted.source, state, moved) if moved is not None else None
    reason = say(
        "it is the state that the layer is given; the input is on {expected}", expected=sides(pasted.recognised)[1]
    )
    return Guess(pasted.source.text_of(state), "hidden-state", reason, fix=pasted.fix(edit))


def _moved_state(pasted: Pasted, state: ast.expr, device: str) -> str | None:
    """The state elsewhere: of an LSTM two tensors, of the others one; None where the text does not tell which."""
    if isinstance(state, ast.Tuple):
        return f"({', '.join(f'{enclosed(pasted.source, part)}.to({device})' for part in state.elts)})"
    code = pasted.below[-1].code if pasted.below else ""
    if "_VF.lstm" in code:
        return f"tuple(part.to({device}) for part in {pasted.source.text_of(state)})"
    return f"{enclosed(pasted.source, state)}.to({device})" if "_VF.gru" in code or "_VF.rnn" in code else None


_RULES: dict[str, Callable[[Pasted], Guess | None]] = {
    "index-device": _index,
    "index-value": _value,
    "rnn-hidden": _hidden,
    "numpy": _numpy,
    "lengths": _lengths,
    "load-without-cuda": _checkpoint,
    "load-bad-index": _checkpoint,
    "ddp-device-ids": _distributed,
}
