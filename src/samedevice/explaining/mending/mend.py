"""`mend`: which edit answers which cause. The sentences are complete on their own; edits come where they are sure.

An edit keeps what the program computes: it only says where. One that also changes what is saved, or where else the
tensor is used, is marked as not safe.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.making import factory_call, from_data, load_call
from samedevice.explaining.live import is_module, is_tensor, requires_grad
from samedevice.explaining.mending.devices_in_scope import device_in_frame, device_in_source, device_of_neighbour
from samedevice.explaining.mending.edits import append, enclosed, insert_before, replace_node
from samedevice.explaining.routes import resolve
from samedevice.explaining.sources import Source
from samedevice.explaining.syntax import call_name, is_discarded_move
from samedevice.explaining.where_made import Made
from samedevice.findings import Edit, Fix

__all__ = ["mend"]


def mend(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """How to mend the fault.

    Args:
        evidence: what was read.
        verdict: the cause.
        made: the line that left the tensor behind.

    Returns:
        None only where nothing useful can be said.
    """
    mender = _MENDERS.get(verdict.slug, _at_use)
    return mender(evidence, verdict, made) or _SENTENCES.get(verdict.slug)


def _fix(edit: Edit | None, *, safe: bool = True) -> Fix | None:
    if edit is None:
        return None
    old = edit.old.split("\n")
    changed = [line.strip() for line in edit.new.split("\n") if line not in old]
    return Fix(" ".join(changed), (edit,), safe)


def _buffer(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`self.pe = …` becomes a buffer, unless the attribute is also set elsewhere or its owner is no module."""
    home = evidence.home()
    statement = made.statement if made is not None else None
    if made is None or home is None or not is_module(home.owner) or not isinstance(statement, ast.Assign):
        return _at_use(evidence, verdict, made)
    target = statement.targets[0]
    definition = made.source.class_at(made.line)
    if len(statement.targets) > 1 or not isinstance(target, ast.Attribute) or definition is None:
        return _at_use(evidence, verdict, made)
    if _times_set(definition, target.attr) > 1 or target.attr != home.key:
        return _at_use(evidence, verdict, made)
    value = _as_parameter(statement.value, made.source)
    if value is not None:
        return _fix(replace_node(made.source, statement.value, value))
    inner = made.source.text_of(statement.value)
    owner = made.source.text_of(target.value)
    text = f'{owner}.register_buffer("{target.attr}", {inner}, persistent=False)'
    return _fix(replace_node(made.source, statement, text))


def _times_set(definition: ast.ClassDef, name: str) -> int:
    stores = [
        node for node in ast.walk(definition)
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store)
    ]  # fmt: skip
    return len(stores)


def _as_parameter(value: ast.expr, source: Source) -> str | None:
    """`nn.Parameter(x).to(d)` is no parameter any more; `nn.Parameter(x.to(d))` is one."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    inner = value.func.value
    if call_name(inner) != "Parameter" or not isinstance(inner, ast.Call) or not inner.args:
        return None
    rest = source.text_of(value)[len(source.text_of(inner)) :]
    arguments = [source.text_of(argument) for argument in inner.args[1:]]
    words = [f"{word.arg}={source.text_of(word.value)}" for word in inner.keywords]
    first = f"{enclosed(source, inner.args[0])}{rest}"
    return f"{source.text_of(inner.func)}({', '.join([first, *arguments, *words])})"


def _module_list(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`self.heads = []` becomes `nn.ModuleList()`, where modules are what it holds."""
    home = evidence.home()
    steps = evidence.steps()
    step = next((step for step in steps if step.kind == "attribute" and is_module(step.owner)), home)
    holds_modules = is_module(evidence.value) or any(is_module(inner.owner) for inner in steps[1:])
    if step is None or not holds_modules:
        return None
    for frame in reversed(evidence.frames):
        source = frame.source
        definition = source.class_named(type(step.owner).__qualname__)
        for node in ast.walk(definition) if definition is not None else ():
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Attribute) and target.attr == step.key for target in node.targets
            ):
                return _fix(_wrapped(source, node.value), safe=False)
    return None


def _wrapped(source: Source, value: ast.expr) -> Edit | None:
    text = source.text_of(value)
    prefix = _nn(source)
    if isinstance(value, ast.List) or isinstance(value, ast.ListComp):
        return replace_node(source, value, f"{prefix}.ModuleList({'' if text == '[]' else text})")
    if isinstance(value, ast.Dict | ast.DictComp):
        return replace_node(source, value, f"{prefix}.ModuleDict({'' if text == '{}' else text})")
    if call_name(value) == "list" and isinstance(value, ast.Call) and len(value.args) == 1:
        return replace_node(source, value, f"{prefix}.ModuleList({source.text_of(value.args[0])})")
    return replace_node(source, value, f"{prefix}.ModuleList({text})") if isinstance(value, ast.Name) else None


def _nn(source: Source) -> str:
    """How the file calls `torch.nn`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module == "torch" and any(a.name == "nn" for a in node.names):
            return next(alias.asname or "nn" for alias in node.names if alias.name == "nn")
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch.nn" and alias.asname:
                    return alias.asname
    return "torch.nn"


def _factory(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`device=` for the factory, said as that place can say it."""
    if made is None or made.statement is None:
        return _at_use(evidence, verdict, made)
    call = factory_call(made.statement, made.source) or from_data(made.statement, made.source)
    device = _device_at(evidence, made)
    if call is None or device is None:
        return _at_use(evidence, verdict, made)
    return _fix(_with_keyword(made.source, call, "device", device))


def _device_at(evidence: Evidence, made: Made) -> str | None:
    """The right device in words that are valid on the line `made`."""
    expected = evidence.expected
    for frame in reversed(evidence.frames):
        if frame.file == made.file and frame.function == made.function:
            found = device_in_frame(frame, expected, made.line)
            if found is not None:
                return found
            neighbour = device_of_neighbour(evidence) if frame is evidence.frame else None
            if neighbour is not None and _known_before(neighbour, frame, made.line):
                return neighbour
    return device_in_source(made.source, made.line)


def _known_before(text: str, frame: object, line: int) -> bool:
    from samedevice.explaining.flow import binding_of
    from samedevice.explaining.frames import UserFrame

    base = text.partition(".")[0]
    if base.startswith("next(") or base == "self":
        return True
    binding = binding_of(base, frame, line + 1) if isinstance(frame, UserFrame) else None
    return binding is None or binding.line < line


def _with_keyword(source: Source, call: ast.Call, name: str, value: str) -> Edit | None:
    text = source.text_of(call)
    if not text.endswith(")"):
        return None
    separator = ", " if call.args or call.keywords else ""
    return replace_node(source, call, f"{text[:-1].rstrip().rstrip(',')}{separator}{name}={value})")


def _kept(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """The dropped result is kept: `mask = mask.to(device)`, where the name may be set there."""
    statement = made.statement if made is not None else None
    call = is_discarded_move(statement)
    if made is None or call is None or not isinstance(call.func, ast.Attribute):
        return _shadowed(evidence, made) or _at_use(evidence, verdict, made)
    target = call.func.value
    if not isinstance(target, ast.Name | ast.Attribute | ast.Subscript) or _is_outer_name(target, made):
        return _at_use(evidence, verdict, made)
    return _fix(insert_or_replace(made, call, f"{made.source.text_of(target)} = {made.source.text_of(call)}"))


def insert_or_replace(made: Made, node: ast.expr, text: str) -> Edit | None:
    """Puts the statement `text` in place of the expression statement `node`."""
    return replace_node(made.source, node, text)


def _shadowed(evidence: Evidence, made: Made | None) -> Fix | None:
    """`batch.mask = …` on a mapping: the entry is meant."""
    statement = made.statement if made is not None else None
    holder = evidence.suspect.holder if evidence.suspect is not None else None
    if made is None or not isinstance(statement, ast.Assign) or holder is None or holder.kind != "item":
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute) or target.attr != holder.key:
        return None
    owner = made.source.text_of(target.value)
    return _fix(replace_node(made.source, target, f'{owner}["{target.attr}"]'))


def _is_outer_name(target: ast.expr, made: Made) -> bool:
    """Whether setting the name there would make a new local variable of it instead."""
    if not isinstance(target, ast.Name):
        return False
    from samedevice.explaining.syntax import bindings_of

    function = made.source.function_at(made.line)
    if function is None:
        return False
    arguments = [*function.args.args, *function.args.kwonlyargs, *function.args.posonlyargs]
    return target.id not in [a.arg for a in arguments] and not bindings_of(target.id, function)


def _moved_input(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`x = x.to(device)` before the line that hands it on, with the script's own word for the device."""
    suspect = evidence.suspect
    if suspect is None or suspect.route is None or not is_tensor(suspect.value):
        return _at_use(evidence, verdict, made)
    frame, statement = suspect.frame, suspect.frame.statement
    device = device_in_frame(frame, evidence.expected, frame.line)
    if device is None or statement is None or suspect.route.scope in ("closure", "global") or "…" in suspect.name:
        return _at_use(evidence, verdict, made)
    return _fix(insert_before(frame.source, statement, f"{suspect.name} = {suspect.name}.to({device})"))


def _moved_module(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`.to(device)` where the module is constructed, or a ModuleList where it hides in a plain list."""
    suspect = evidence.suspect
    route = suspect.route if suspect is not None else None
    if suspect is None or route is None:
        return None
    if any(step.kind == "item" for step in route.steps):
        return _module_list(evidence, verdict, made)
    binding = suspect.binding
    if binding is None or binding.value is None or binding.loop or binding.index is not None:
        return None
    if not isinstance(binding.value, ast.Call):
        return None
    device = device_in_frame(suspect.frame, evidence.expected, binding.line)
    if device is None:
        return None
    return _fix(append(suspect.frame.source, binding.value, f".to({device})"))


def _on_cpu(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`.cpu()` at the place of use: lengths, and arrays for NumPy."""
    frame = evidence.frame
    if frame is None or evidence.side is None:
        return None
    for one in evidence.side.wrong:
        if one.node is None:
            continue
        copy = ".detach().cpu()" if verdict.slug == "numpy-on-cuda" and requires_grad(one.tensor) else ".cpu()"
        return _fix(replace_node(frame.source, one.node, enclosed(frame.source, one.node) + copy))
    return None


def _generator(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    statement = made.statement if made is not None else None
    for node in ast.walk(statement) if made is not None and statement is not None else ():
        if isinstance(node, ast.Call) and call_name(node) == "Generator" and not node.args and not node.keywords:
            recognised = evidence.recognised
            kind = recognised.values.get("device", "") if recognised is not None else ""
            device = None
            for frame in evidence.frames:
                if made is not None and frame.file == made.file and frame.function == made.function:
                    device = device_in_frame(frame, f"{kind}:0", made.line)
            if made is not None:
                return _fix(_with_keyword(made.source, node, "device", device or f'"{kind}"'), safe=False)
    return None


def _map_location(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    statement = made.statement if made is not None else (evidence.frame.statement if evidence.frame else None)
    source = made.source if made is not None else (evidence.frame.source if evidence.frame else None)
    call = load_call(statement)
    if call is None or source is None:
        return None
    device = _device_at(evidence, made) if made is not None else None
    return _fix(_with_keyword(source, call, "map_location", device or '"cpu"'))


def _accumulated(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`total += loss` with the right side brought to where the total is: it computes the same, in the same place."""
    frame = evidence.frame
    running = frame.running if frame is not None else None
    if frame is None or not isinstance(running, ast.AugAssign):
        return _at_use(evidence, verdict, made)
    device = (
        device_in_frame(frame, evidence.expected, made.line)
        if made is not None and made.function == frame.function
        else None
    )
    call = (factory_call(made.statement, made.source) or from_data(made.statement, made.source)) if made else None
    if made is not None and device is not None and call is not None:
        return _fix(_with_keyword(made.source, call, "device", device))
    target = frame.source.text_of(running.target)
    value = enclosed(frame.source, running.value)
    return _fix(replace_node(frame.source, running.value, f"{value}.to({target}.device)"))


def _at_use(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`.to(x.device)` on the failing line: always possible where both sides have an expression there."""
    frame, side = evidence.frame, evidence.side
    if frame is None or side is None or side.expected in ("", "cpu"):
        return None
    device = device_of_neighbour(evidence)
    wrong = [one for one in side.wrong if one.node is not None]
    if device is None or len(wrong) != 1 or wrong[0].node is None:
        return None
    node = wrong[0].node
    route = resolve(node, frame)
    if route is not None and not is_tensor(route.value):
        return None
    return _fix(replace_node(frame.source, node, f"{enclosed(frame.source, node)}.to({device})"))


def _guard(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """The cache asks for the device too: `if self.t is None or self.t.device != device:`."""
    if made is None or not isinstance(made.statement, ast.Assign):
        return _at_use(evidence, verdict, made)
    target, source = made.statement.targets[0], made.source
    device = next((
        source.text_of(word.value) for node in ast.walk(made.statement.value) if isinstance(node, ast.Call)
        for word in node.keywords if word.arg == "device"
    ), None) or device_in_source(source, made.line)  # fmt: skip
    test = _test_around(source, made.line)
    if device is None or test is None or not isinstance(target, ast.Attribute | ast.Subscript | ast.Name):
        return _at_use(evidence, verdict, made)
    kept = source.text_of(target)
    return _fix(replace_node(source, test, f"{source.text_of(test)} or {kept}.device != {device}"))


def _test_around(source: Source, line: int) -> ast.expr | None:
    found = [
        node for node in ast.walk(source.tree)
        if isinstance(node, ast.If) and node.lineno < line <= (node.end_lineno or 0) and isinstance(node.test, ast.Compare)
    ]  # fmt: skip
    return max(found, key=lambda node: node.lineno).test if found else None


_MENDERS: dict[str, Callable[[Evidence, Verdict, Made | None], Fix | None]] = {
    "plain-attribute": _buffer,
    "plain-container": _module_list,
    "hardcoded-device": _buffer,
    "factory-default-device": _factory,
    "hidden-state": _factory,
    "result-discarded": _kept,
    "input-not-moved": _moved_input,
    "model-not-moved": _moved_module,
    "second-model-not-moved": _moved_module,
    "criterion-not-moved": _moved_module,
    "lengths-must-be-cpu": _on_cpu,
    "numpy-on-cuda": _on_cpu,
    "generator-device": _generator,
    "checkpoint-map-location": _map_location,
    "metric-state": _accumulated,
    "stale-cache": _guard,
}

_SENTENCES = {
    "input-not-moved": Fix("move it first: x = x.to(device)"),
    "model-not-moved": Fix("move the model: model = model.to(device)"),
    "plain-attribute": Fix('make it a buffer: self.register_buffer("name", tensor, persistent=False)'),
    "plain-container": Fix("keep modules in nn.ModuleList or nn.ModuleDict, parameters in nn.ParameterList"),
    "result-discarded": Fix("keep the result: x = x.to(device)"),
    "factory-default-device": Fix("say where: device=x.device"),
    "hardcoded-device": Fix("use the script's own device instead of a fixed one"),
    "nested-batch": Fix("move the whole batch: batch = samedevice.move_to_device(batch, device)"),
    "index-device": Fix("bring the index to the tensor: index.to(x.device)"),
    "lengths-must-be-cpu": Fix("pass the lengths on the CPU: lengths.cpu()"),
    "generator-device": Fix("make the generator where it draws: torch.Generator(device=device)"),
    "numpy-on-cuda": Fix("bring it to the CPU first: x.detach().cpu().numpy()"),
    "checkpoint-map-location": Fix("say where to: torch.load(file, map_location=device)"),
    "module-created-in-forward": Fix("construct the module in __init__, so that it moves with the model and trains"),
    "split-model": Fix("bring it to the part that uses it: x.to(y.device)"),
    "dataparallel-misplaced": Fix("move the module to the first of device_ids before it is wrapped"),
    "global-tensor": Fix("pass the tensor in, or move it where it is used: table.to(x.device)"),
    "stale-cache": Fix("make the device part of what the cache asks for"),
    "second-model-not-moved": Fix("move the other model too: teacher = teacher.to(device)"),
    "hidden-state": Fix("make the state where the input is: torch.zeros(…, device=x.device)"),
    "metric-state": Fix("keep the running value where the results are, or bring the results to it"),
    "criterion-not-moved": Fix("move the loss with the model: criterion = criterion.to(device)"),
    "optimizer-state": Fix("bring the state to the parameters: samedevice.sync_optimizer(optimizer)"),
    "optimizer-stale-params": Fix("construct the optimizer after the model has its final parameters"),
    "scaler-or-scheduler": Fix("step the optimizer whose parameters the loss reaches"),
}
