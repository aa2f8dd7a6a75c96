"""Mends of generators on the wrong kind of device."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import device_of, is_generator
from samedevice.explaining.made import Made
from samedevice.explaining.mending.devices_in_scope import device_in_frame
from samedevice.explaining.mending.edits import as_fix, replace_node, with_keyword
from samedevice.explaining.routes import resolve
from samedevice.explaining.sources import Source
from samedevice.explaining.syntax import call_name, keyword
from samedevice.findings import Fix

__all__ = ["generator"]

_SHUFFLING = ("DataLoader", "RandomSampler", "random_split", "SubsetRandomSampler", "WeightedRandomSampler")
"""What draws with the CPU's generator unless it is given one. Source: torch/utils/data/sampler.py, 2.6 to 2.13."""


def generator(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """The generator is made where it draws; one that others share draws on its own device, and the numbers move.

    What is drawn by a generator of another device are other numbers, so that is not safe.
    """
    kind = evidence.recognised.values.get("device", "") if evidence.recognised is not None else ""
    frame = evidence.frame
    if frame is None or not kind:
        return None
    if not is_generator(evidence.value):
        return _given(frame, kind)
    if _is_shared(evidence, frame):
        moved = _drawn_where_it_is(frame, evidence)
        if moved is not None:
            return moved
    return _made_there(evidence, made, kind)


def _made_there(evidence: Evidence, made: Made | None, kind: str) -> Fix | None:
    """`torch.Generator()` becomes one of the device that it draws for."""
    statement = made.statement if made is not None else None
    if made is None or statement is None:
        return None
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and call_name(node) == "Generator"]
    call = next((call for call in calls if not call.keywords or keyword(call, "device")), None)
    if call is None:
        return _told_helper(made.source, statement, kind)
    expected = "cpu" if kind == "cpu" else f"{kind}:0"
    names = (device_in_frame(frame, expected, made.line) for frame in evidence.frames_of(made))
    named = next((name for name in names if name), None)
    said = call.args[0] if call.args else keyword(call, "device")
    where = named or f'"{kind}"'
    if said is not None:
        return as_fix(replace_node(made.source, said, where), safe=False)
    return as_fix(with_keyword(made.source, "device", where, call), safe=False)


def _told_helper(source: Source, statement: ast.stmt, kind: str) -> Fix | None:
    """`g = seeded(0, device)` of a helper that makes the generator where it is told: it is told another device."""
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
        for function in source.functions_named(call_name(call)):
            parameter = _device_parameter(function)
            names = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
            if parameter is None or parameter not in names or any(isinstance(each, ast.Starred) for each in call.args):
                continue
            index, given = names.index(parameter), keyword(call, parameter)
            given = call.args[index] if given is None and index < len(call.args) else given
            if given is not None:
                return as_fix(replace_node(source, given, f'"{kind}"'), safe=False)
            return as_fix(with_keyword(source, parameter, f'"{kind}"', call), safe=False)
    return None


def _device_parameter(function: ast.AST) -> str | None:
    """The name that the function gives as the device of the generator that it makes."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and call_name(node) == "Generator":
            said = node.args[0] if node.args else keyword(node, "device")
            return said.id if isinstance(said, ast.Name) else None
    return None


def _is_shared(evidence: Evidence, frame: UserFrame) -> bool:
    """Whether other calls of the file draw with the same variable."""
    name = evidence.suspect.name.rpartition(".")[2] if evidence.suspect is not None else ""
    draws = [
        node for node in ast.walk(frame.source.tree) if isinstance(node, ast.Call)
        if (word := keyword(node, "generator")) is not None and ast.unparse(word).rpartition(".")[2] == name
    ]  # fmt: skip
    return len(draws) > 1


def _drawn_where_it_is(frame: UserFrame, evidence: Evidence) -> Fix | None:
    """`torch.randn(3, generator=g, device=device)` becomes `torch.randn(3, generator=g).to(device)`."""
    running = frame.running
    calls = [node for node in ast.walk(running) if isinstance(node, ast.Call)] if running is not None else []
    for call in calls:
        word, device = keyword(call, "generator"), keyword(call, "device")
        route = resolve(word, frame) if word is not None else None
        if route is None or route.value is not evidence.value or device is None:
            continue
        text = frame.source.text_of(call)
        said = f"device={frame.source.text_of(device)}"
        where = device_of(evidence.value)
        plain = text.replace(f", {said}", "", 1) if where == "cpu" else text.replace(said, f'device="{where}"', 1)
        if plain != text:
            return as_fix(replace_node(frame.source, call, f"{plain}.to({frame.source.text_of(device)})"))
    return None


def _given(frame: UserFrame, kind: str) -> Fix | None:
    """A loader that shuffles is given a generator of the default device: it draws its indices there."""
    call = _shuffling_call(frame.source, frame.line)
    if call is None:
        return None
    device = device_in_frame(frame, f"{kind}:0", call.lineno) or f'"{kind}"'
    return as_fix(with_keyword(frame.source, "generator", f"torch.Generator(device={device})", call), safe=False)


def _shuffling_call(source: Source, line: int) -> ast.Call | None:
    """The call on `line`, else the last one before it, that draws and is given no generator."""
    calls = [
        node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and call_name(node) in _SHUFFLING
        if keyword(node, "generator") is None and _shuffles(node)
    ]  # fmt: skip
    here = [call for call in calls if call.lineno <= line <= (call.end_lineno or 0)]
    before = [call for call in calls if call.lineno < line]
    return next(reversed(here or before), None)


def _shuffles(call: ast.Call) -> bool:
    said = keyword(call, "shuffle")
    return call_name(call) != "DataLoader" or not (said is None or (isinstance(said, ast.Constant) and not said.value))
