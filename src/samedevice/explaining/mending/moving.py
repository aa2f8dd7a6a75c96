"""Mends that move: keep a dropped result, move the input before it is handed on, the module where it is made."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.discards import forgetting_loop
from samedevice.explaining.flow import Suspect, binding_of
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import holds_module, is_module, is_tensor, name_of_class, names_of_class, requires_grad
from samedevice.explaining.made import Made
from samedevice.explaining.making import fixed_device, is_guarded, makes_module
from samedevice.explaining.mending.at_use import at_use
from samedevice.explaining.mending.batches import moved_whole
from samedevice.explaining.mending.beside import moved_beside
from samedevice.explaining.mending.collecting import collected_on_cpu
from samedevice.explaining.mending.devices_in_scope import device_in_frame, moves_by_cuda
from samedevice.explaining.mending.edits import append, as_fix, enclosed, insert_before, replace_node
from samedevice.explaining.mending.loops import kept_in_loop
from samedevice.explaining.mending.moved_copies import moved_one
from samedevice.explaining.mending.ordering import variables_of
from samedevice.explaining.mending.registering import module_list
from samedevice.explaining.mending.siblings import device_beside
from samedevice.explaining.routes import Route, resolve
from samedevice.explaining.set_in_class import only_assignment
from samedevice.explaining.sources import Source
from samedevice.explaining.syntax import bindings_of, dropped_in_loop, is_discarded_move, move_calls
from samedevice.explaining.where_made import in_source
from samedevice.findings import Fix


def kept(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """The dropped result is kept: `mask = mask.to(device)`, where the name may be set there."""
    statement = made.statement if made is not None else None
    loop = forgetting_loop(made.source, statement) if made is not None else None
    if made is not None and loop is not None and not _is_used_in(loop, evidence, made):
        return kept_in_loop(evidence, made.source, loop) or at_use(evidence, verdict, made)
    if made is None or is_discarded_move(statement) is None:
        return _shadowed(evidence, made) or at_use(evidence, verdict, made)
    return kept_at(made) or at_use(evidence, verdict, made)


def kept_at(made: Made) -> Fix | None:
    """The statement of `made`, a move whose result nothing keeps, with the result kept under the same name."""
    call = is_discarded_move(made.statement)
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    target = call.func.value
    if not isinstance(target, ast.Name | ast.Attribute | ast.Subscript) or _is_outer_name(target, made):
        return None
    loop = forgetting_loop(made.source, made.statement)
    if loop is not None and dropped_in_loop(loop):
        return None  # the loop's variable is set anew before anybody reads it
    return as_fix(replace_node(made.source, call, f"{made.source.text_of(target)} = {made.source.exact_text(call)}"))


def _is_used_in(loop: ast.For | ast.AsyncFor, evidence: Evidence, made: Made) -> bool:
    """Whether the wrong tensor was used in the very round of the loop that dropped the moved one."""
    return any(frame.line in range(loop.lineno, (loop.end_lineno or 0) + 1) for frame in evidence.frames_of(made))


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
    return as_fix(replace_node(made.source, target, f'{owner}["{target.attr}"]'))


def _is_outer_name(target: ast.expr, made: Made) -> bool:
    """Whether setting the name there would make a new local variable of it instead."""
    if not isinstance(target, ast.Name):
        return False
    function = made.source.function_at(made.line)
    if function is None:
        return False
    arguments = [*function.args.args, *function.args.kwonlyargs, *function.args.posonlyargs]
    return target.id not in [a.arg for a in arguments] and not bindings_of(target.id, function)


def moved_input(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`x = x.to(device)` before the line that hands it on, with the script's own word for the device."""
    suspect = evidence.suspect
    if suspect is None or suspect.route is None or not is_tensor(suspect.value):
        return at_use(evidence, verdict, made)
    frame, statement = suspect.frame, suspect.frame.statement
    fix = moved_one(evidence) or moved_beside(evidence) or moved_whole(evidence)
    if fix is not None:
        return fix
    device = device_in_frame(frame, evidence.expected, frame.line)
    if device is None or statement is None or suspect.route.scope in ("closure", "global") or "…" in suspect.name:
        return at_use(evidence, verdict, made)
    return as_fix(insert_before(frame.source, statement, f"{suspect.name} = {suspect.name}.to({device})"))


def moved_module(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`.to(device)` where the module is constructed, or before its use; a ModuleList where it hides in a plain list."""
    suspect = evidence.suspect
    route = suspect.route if suspect is not None else None
    if suspect is None or route is None:
        return None
    if any(step.kind == "item" for step in route.steps):
        return module_list(evidence, verdict, made)
    return (
        _where_constructed(evidence, made)
        or _where_kept(evidence)
        or _outside(evidence)
        or _before_use(evidence, verdict)
        or _as_part(evidence)
    )


def _where_constructed(evidence: Evidence, made: Made | None) -> Fix | None:
    """`model = Net()` becomes `model = Net().to(device)`, where a device has a name by then."""
    suspect = evidence.suspect
    places = [(made.source, made.statement)] if made is not None else []
    steps = evidence.steps()
    start = steps[0].owner if steps else evidence.value
    if (
        suspect is not None
        and suspect.binding is not None
        and isinstance(suspect.binding.node, ast.stmt)
        and (is_tensor(start) or _has_move(start))
    ):
        places.append((suspect.frame.source, suspect.binding.node))
    for source, statement in places:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        if not makes_module(statement) and not is_module(evidence.value):
            continue
        for frame in reversed(evidence.frames):
            covers = frame.source is source and frame.definition is source.function_at(statement.lineno)
            fix = _moved_at(statement, frame, evidence.expected) if covers else None
            if fix is not None:
                return fix
    return None


def _where_kept(evidence: Evidence) -> Fix | None:
    """`self.teacher = teacher.eval()` gets `.to(self.device)`, where an object keeps a module that it was given."""
    steps = evidence.steps() if evidence.suspect is not None else ()
    if evidence.suspect is None or not steps or is_module(steps[0].owner) or steps[0].kind != "attribute":
        return None
    made = only_assignment(steps[0])
    statement = made.statement if made is not None else None
    if made is None or not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return None
    if not isinstance(statement.targets[0], ast.Attribute) or list(move_calls(statement.value)):
        return None
    device = device_beside(steps[0], made, evidence.expected)
    value = enclosed(made.source, statement.value)
    return as_fix(replace_node(made.source, statement.value, f"{value}.to({device})")) if device is not None else None


def _moved_at(statement: ast.Assign, frame: UserFrame, expected: str) -> Fix | None:
    """The construction with `.to(device)` behind it, said as the file says it."""
    device = device_in_frame(frame, expected, statement.lineno)
    if (device is None or device.startswith("next(")) and moves_by_cuda(frame.source) and expected == "cuda:0":
        return as_fix(append(frame.source, statement.value, ".cuda()"))
    return as_fix(append(frame.source, statement.value, f".to({device})")) if device is not None else None


def _outside(evidence: Evidence) -> Fix | None:
    """The same where the running method's own object was constructed: it is `criterion` to its caller, not `self`."""
    route = evidence.suspect.route if evidence.suspect is not None else None
    if route is None or not route.starts_at_self:
        return None
    module = _reached_by_move(route)
    for frame, name in variables_of(module, evidence):
        binding = binding_of(name, frame)
        node = binding.node if binding is not None and binding.index is None else None
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _has_move(module):
            fix = _moved_at(node, frame, evidence.expected)
            if fix is not None:
                return fix
    return None


def _has_move(value: object) -> bool:
    """Whether `value` can be told `.to(device)`: a module, or an object whose class says how it is moved."""
    return is_module(value) or "to" in names_of_class(type(value))


def _reached_by_move(route: Route) -> object:
    """The outermost module on the route whose `.to()` reaches the end of it: past an attribute that is none of its."""
    owners = [*(step.owner for step in route.steps), route.value]
    past = [index + 1 for index, step in enumerate(route.steps) if is_module(step.owner) and step.kind == "attribute"]
    inner = next((owner for owner in owners[past[-1] :] if is_module(owner)), None) if past else None
    return owners[0] if inner is None else inner


def _as_part(evidence: Evidence) -> Fix | None:
    """The model that the module became a part of is moved once more, before it is used."""
    route = evidence.suspect.route if evidence.suspect is not None else None
    start = (route.steps[0].owner if route.steps else route.value) if route is not None else None
    for frame in evidence.frames:
        statement = frame.statement
        values = {name: value for name, value in frame.frame.f_locals.items() if name not in ("self", "cls")}
        name = next((key for key, value in values.items() if is_module(value) and holds_module(value, start)), None)
        if name is None or statement is None:
            continue
        device = device_in_frame(frame, evidence.expected, frame.line)
        by_cuda = (device is None or device.startswith("next(")) and moves_by_cuda(frame.source)
        if device is None and not by_cuda:
            continue
        before = _first_of_loops(frame, statement, (name, device or name))
        return as_fix(insert_before(frame.source, before, f"{name}.cuda()" if by_cuda else f"{name}.to({device})"))
    return None


def _before_use(evidence: Evidence, verdict: Verdict) -> Fix | None:
    suspect = evidence.suspect
    if suspect is None or suspect.route is None or "…" in suspect.name:
        return None
    steps = suspect.route.steps
    owners = [step for step in steps if is_module(step.owner)]
    name = suspect.route.upto(owners[0]) if owners else suspect.name
    if verdict.name is not None and verdict.name.startswith(suspect.route.base):  # else it is an outer function's word
        name = verdict.name
    statement = suspect.frame.statement
    device = device_in_frame(suspect.frame, evidence.expected, suspect.frame.line)
    if statement is None or device is None or name == "self":
        return None
    before = _first_of_loops(suspect.frame, statement, (name, device))
    return as_fix(insert_before(suspect.frame.source, before, f"{name}.to({device})"))


def _first_of_loops(frame: UserFrame, statement: ast.stmt, expressions: tuple[str, ...]) -> ast.stmt:
    """The outermost loop around `statement` before which all of `expressions` can be said, else `statement`."""
    names = {node.id for text in expressions for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    scope = frame.definition or frame.source.tree
    bound = [binding.line for name in names for binding in bindings_of(name, scope)]
    for loop in frame.source.loops_around(statement.lineno):
        if not any(loop.lineno <= line <= (loop.end_lineno or 0) for line in bound):
            return loop
    return statement


def made_late(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """A layer that `forward` makes once, at the first input, goes where that input is.

    One that is made anew in each call is left to its author: it would run, and never train.
    """
    statement = made.statement if made is not None else None
    if made is None or not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
        return None
    call = makes_module(statement)
    if call is None or call is not statement.value or not is_guarded(made.source, statement, statement.targets[0].attr):
        return None
    running = made.source.function_at(made.line)
    frames = [frame for frame in reversed(evidence.frames) if frame.definition is running]
    device = next((device_in_frame(frame, evidence.expected, made.line) for frame in frames), None)
    return as_fix(append(made.source, call, f".to({device})"), safe=False) if device is not None else None


def on_cpu(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`.cpu()` at the place of use: lengths, and arrays for NumPy."""
    frame = evidence.frame
    if frame is None or evidence.side is None:
        return None
    for one in evidence.side.wrong:
        if one.node is None:
            continue
        copy = ".detach().cpu()" if verdict.slug == "numpy-on-cuda" and requires_grad(one.tensor) else ".cpu()"
        if one.route is None or _is_tensor_itself(one.node, frame):
            return as_fix(replace_node(frame.source, one.node, enclosed(frame.source, one.node) + copy))
        if _is_list_of_tensors(one.node, frame):
            return collected_on_cpu(one.node, frame, copy)
    return None


def _is_list_of_tensors(node: ast.expr, frame: UserFrame) -> bool:
    route = resolve(node, frame)
    if route is None or not (type(route.value) is list or type(route.value) is tuple):
        return False
    return bool(route.value) and all(is_tensor(part) for part in route.value)


def _is_tensor_itself(node: ast.expr, frame: UserFrame) -> bool:
    """Whether the expression is the tensor itself and not a list or object that holds it."""
    route = resolve(node, frame)
    return route is None or is_tensor(route.value)


def in_own_move(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """The class's own `to` moves the field that it hands on as it was: `self.mask` becomes `self.mask.to(device)`."""
    steps = evidence.steps()
    if steps and steps[-1].kind == "attribute" and is_tensor(evidence.value):
        owner, key = name_of_class(type(steps[-1].owner), qualified=True), str(steps[-1].key)
        for frame in evidence.frames:
            definition = frame.source.class_named(owner)
            for method in definition.body if definition is not None else ():
                if isinstance(method, ast.FunctionDef) and method.name == "to" and len(method.args.args) == 2:
                    return _field_moved(frame.source, method, key) or at_use(evidence, verdict, made)
    return moved_beside(evidence) or moved_whole(evidence) or at_use(evidence, verdict, made)


def _field_moved(source: Source, method: ast.FunctionDef, field: str) -> Fix | None:
    owner, device = (argument.arg for argument in method.args.args)
    read = [
        node for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and node.attr == field and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name) and node.value.id == owner
    ]  # fmt: skip
    if len(read) != 1:
        return None
    text = source.text_of(read[0])
    return as_fix(replace_node(source, read[0], f"{text}.to({device})"))


def to_next_part(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`self.stage1(h)` becomes `self.stage1(h.to("cuda:1"))`, with the device as the file says it for that part."""
    frame, side = evidence.frame, evidence.side
    wrong = [one for one in side.wrong if one.node is not None] if side is not None else []
    parameter = next((one for one in evidence.seen if one.device == evidence.expected and one.route is not None), None)
    if frame is None or parameter is None or parameter.route is None or len(wrong) != 1 or wrong[0].node is None:
        return at_use(evidence, verdict, made)
    steps = parameter.route.steps
    placed = in_source(Suspect(parameter.route.text, frame, None, "", Route(frame, "self", "local", steps[:1], None)))
    device = fixed_device(placed.statement) if placed is not None and steps else None
    if not isinstance(device, ast.Constant) or device.value != evidence.expected or placed is None:
        return at_use(evidence, verdict, made)
    text = f"{enclosed(frame.source, wrong[0].node)}.to({placed.source.text_of(device)})"
    return as_fix(replace_node(frame.source, wrong[0].node, text))
