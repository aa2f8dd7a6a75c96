"""Mends of the line that made the tensor: a device for the factory, the generator, the checkpoint, the cache."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.flow import binding_of
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import is_module, is_tensor
from samedevice.explaining.made import Made
from samedevice.explaining.making import factory_call, fixed_device, from_data, load_call
from samedevice.explaining.mending.at_use import at_use
from samedevice.explaining.mending.devices_in_scope import device_in_frame, device_in_source, device_of_neighbour
from samedevice.explaining.mending.edits import append, as_fix, enclosed, replace_node, with_keyword
from samedevice.explaining.mending.optimizers import constructed_after
from samedevice.explaining.mending.registering import buffer
from samedevice.explaining.routes import resolve
from samedevice.explaining.sources import Source
from samedevice.explaining.syntax import call_name, keyword, move_calls, moved_device
from samedevice.findings import Fix


def factory(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`device=` for the factory, said as that place can say it."""
    if made is None or made.statement is None:
        return at_use(evidence, verdict, made)
    call = factory_call(made.statement, made.source) or from_data(made.statement, made.source)
    device = device_at(evidence, made)
    if call is None or device is None:
        return at_use(evidence, verdict, made)
    return as_fix(with_keyword(made.source, "device", device, *(_side_by_side(made) or [call])))


def _side_by_side(made: Made) -> list[ast.Call]:
    """`return torch.zeros(n), torch.zeros(n)`: what is made side by side goes to one device side by side."""
    value = getattr(made.statement, "value", None)
    parts = value.elts if isinstance(value, ast.Tuple) else []
    calls = [part for part in parts if isinstance(part, ast.Call) and factory_call(part, made.source) is part]
    return calls if len(calls) == len(parts) else []


def recurrent(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """The recurrent state is made where the input is, and stays there: a helper's `.cpu()` goes."""
    statement = made.statement if made is not None else None
    if made is not None and statement is not None and made.event == "moved" and evidence.device == "cpu":
        calls = [call for call in move_calls(statement) if call_name(call) == "cpu" or _says_cpu(moved_device(call))]
        if len(calls) == 1 and isinstance(calls[0].func, ast.Attribute):
            return as_fix(replace_node(made.source, calls[0], made.source.exact_text(calls[0].func.value)))
    return factory(evidence, verdict, made)


def _says_cpu(device: ast.expr | None) -> bool:
    return isinstance(device, ast.Constant) and device.value == "cpu"


def device_at(evidence: Evidence, made: Made) -> str | None:
    """The right device in words that are valid on the line `made`."""
    expected = evidence.expected
    for frame in evidence.frames_of(made):
        found = device_in_frame(frame, expected, made.line)
        if found is not None:
            return found
        neighbour = device_of_neighbour(evidence) if frame is evidence.frame else None
        if neighbour is not None and _known_before(neighbour, frame, made.line):
            return neighbour
    return device_in_source(made.source, made.line)


def _known_before(text: str, frame: UserFrame, line: int) -> bool:
    base = text.partition(".")[0]
    if base.startswith("next(") or base == "self":
        return True
    binding = binding_of(base, frame, line + 1)
    return binding is None or binding.line < line


def named_device(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """The fixed device gives way to the script's own word for it; in a module's attribute, a buffer does."""
    home = evidence.home()
    if home is not None and is_module(home.owner) and home.kind == "attribute":
        return buffer(evidence, verdict, made)
    device = device_at(evidence, made) if made is not None else None
    fixed = fixed_device(made.statement) if made is not None else None
    if made is not None and device is None:
        device = _as_elsewhere(fixed, evidence.expected, made.source)
    if made is None or device is None or fixed is None:
        return at_use(evidence, verdict, made)
    if isinstance(fixed, ast.Call) and isinstance(fixed.func, ast.Attribute):  # x.cuda()
        receiver = enclosed(made.source, fixed.func.value)
        return as_fix(replace_node(made.source, fixed, f"{receiver}.to({device})"))
    return as_fix(replace_node(made.source, fixed, device))


def _as_elsewhere(fixed: ast.expr | None, expected: str, source: Source) -> str | None:
    """The other device as the file writes it elsewhere, where it names its devices one by one."""
    if not isinstance(fixed, ast.Constant):
        return None
    said = [node for node in ast.walk(source.tree) if isinstance(node, ast.Constant) and node.value == expected]
    return source.text_of(said[0]) if said else None


def returned_gradient(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """What `backward` returns goes to the device of the gradient that it was given."""
    suspect = evidence.suspect
    node = suspect.node if suspect is not None else None
    if evidence.recognised is not None and not evidence.recognised.values.get("node_function"):
        return factory(evidence, verdict, made)  # a gradient that the caller gave
    if suspect is None or not isinstance(node, ast.expr):
        return None
    source = suspect.frame.source
    method = source.function_at(node.lineno)
    names = [argument.arg for argument in method.args.args] if method is not None else []
    if len(names) < 2:
        return None
    return as_fix(replace_node(source, node, f"{enclosed(source, node)}.to({names[1]}.device)"))


def assigned_gradient(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`p.grad = g` becomes `p.grad = g.to(p.device)`."""
    frame = evidence.frame
    statement = frame.statement if frame is not None else None
    if frame is None or not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
        return None
    owner = frame.source.text_of(statement.targets[0].value)
    value = enclosed(frame.source, statement.value)
    return as_fix(replace_node(frame.source, statement.value, f"{value}.to({owner}.device)"))


def stale_optimizer(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """The optimizer is constructed after the model that it is to train."""
    names = [route.base for route in evidence.models() if not route.steps]
    fixes = (constructed_after(made.file, made.line, name) for name in names) if made is not None else ()
    return next((fix for fix in fixes if fix is not None), None)


def map_location(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`torch.load(file)` is told where to."""
    frame = evidence.frame
    statement = made.statement if made is not None else (frame.statement if frame is not None else None)
    source = made.source if made is not None else (frame.source if frame is not None else None)
    call = load_call(statement)
    if call is None or source is None:
        return None
    device = device_at(evidence, made) if made is not None else None
    # Where there is no word for the device by then, the one that the failing line wants, which fixes it.
    where = device or f'"{evidence.expected or "cpu"}"'
    said = call.args[1] if len(call.args) > 1 else keyword(call, "map_location")
    edit = with_keyword(source, "map_location", where, call) if said is None else replace_node(source, said, where)
    return as_fix(edit, safe=device is not None)


def accumulated(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`total += loss` with the right side brought to where the total is: it computes the same, in the same place."""
    frame = evidence.frame
    running = frame.running if frame is not None else None
    if frame is None or not isinstance(running, ast.AugAssign):
        return _joined(evidence) or at_use(evidence, verdict, made)
    device = (
        device_in_frame(frame, evidence.expected, made.line)
        if made is not None and made.function == frame.function
        else None
    )
    call = (factory_call(made.statement, made.source) or from_data(made.statement, made.source)) if made else None
    if made is not None and device is not None and call is not None:
        return as_fix(with_keyword(made.source, "device", device, call))
    value = enclosed(frame.source, running.value)
    where = "cpu()" if evidence.device == "cpu" else f"to({frame.source.text_of(running.target)}.device)"
    return as_fix(replace_node(frame.source, running.value, f"{value}.{where}"))


def _joined(evidence: Evidence) -> Fix | None:
    """Results of several accelerators in one list are joined on the CPU: `torch.cat([each.cpu() for each in xs])`."""
    frame, call = evidence.frame, evidence.frame.running if evidence.frame is not None else None
    if frame is None or not isinstance(call, ast.Call) or evidence.operation not in ("cat", "stack") or not call.args:
        return None
    route = resolve(call.args[0], frame)
    parts = route.value if route is not None and type(route.value) is list else []
    if "cpu" in (evidence.device, evidence.expected) or not parts or not all(is_tensor(part) for part in parts):
        return None
    text = frame.source.exact_text(call.args[0])
    return as_fix(replace_node(frame.source, call.args[0], f"[each.cpu() for each in {text}]"))


def guard(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """The cache asks for the device too: `if self.t is None or self.t.device != device:`."""
    if made is None or not isinstance(made.statement, ast.Assign):
        return at_use(evidence, verdict, made)
    filled = _filled_there(evidence, made)
    if filled is not None:
        return filled
    target, source = made.statement.targets[0], made.source
    if isinstance(target, ast.Tuple | ast.List):  # what is set together has been on one device together
        target = target.elts[0]
    device = next((
        source.text_of(word.value) for node in ast.walk(made.statement.value) if isinstance(node, ast.Call)
        for word in node.keywords if word.arg == "device"
    ), None) or device_in_source(source, made.line)  # fmt: skip
    test = _test_around(source, made.line)
    if device is None or test is None or not isinstance(target, ast.Attribute | ast.Subscript | ast.Name):
        return at_use(evidence, verdict, made)
    kept = source.text_of(target)
    return as_fix(append(source, test, f" or {kept}.device != {device}"))


def _filled_there(evidence: Evidence, made: Made) -> Fix | None:
    """A factory that fills the cache without a device makes the same again however often it is asked."""
    root = evidence.root
    if evidence.device != "cpu" or root is None or (root.file, root.function) != (made.file, made.function):
        return None
    call, device = factory_call(root.statement, root.source), device_at(evidence, root)
    if call is None or device is None:
        return None
    return as_fix(with_keyword(root.source, "device", device, call))


def _test_around(source: Source, line: int) -> ast.expr | None:
    tests = [node for node in ast.walk(source.tree) if isinstance(node, ast.If) and _may_be_widened(node.test)]
    found = [node for node in tests if node.lineno < line <= (node.end_lineno or 0)]
    return max(found, key=lambda node: node.lineno).test if found else None


def _may_be_widened(test: ast.expr) -> bool:
    """Whether `or …` after the text of `test` says what it seems to."""
    return isinstance(test, ast.Compare) or (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or))
