"""Causes told by who owns the tensor: a module's parameter, an optimizer's state, a loss, a hidden list of modules."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.diagnosing.second_models import is_called_second
from samedevice.explaining.flow import Suspect, follow_route
from samedevice.explaining.live import (
    devices_of_parameters,
    holds_module,
    instance_dict,
    is_module,
    is_optimizer,
    is_parameter,
    is_tensor,
    module_of_class,
    name_of_class,
    names_of_class,
    parameters_of_module,
    requires_grad,
    shape_of,
)
from samedevice.explaining.made import Made
from samedevice.explaining.making import makes_module
from samedevice.explaining.reading import attribute
from samedevice.explaining.routes import Route, Step, search
from samedevice.explaining.set_in_class import only_assignment
from samedevice.explaining.vocabulary import LOSS
from samedevice.explaining.where_made import in_source
from samedevice.texts import listed, say

__all__ = ["judge"]


def judge(evidence: Evidence) -> Verdict | None:
    """The cause that the owner's kind settles."""
    if evidence.suspect is None or evidence.suspect.route is None:
        return None
    return _optimizer_state(evidence) or _module(evidence)


def _optimizer_state(evidence: Evidence) -> Verdict | None:
    route = evidence.suspect.route if evidence.suspect is not None else None
    steps = route.steps if route is not None else ()
    for step in steps:
        if is_optimizer(step.owner) and step.kind == "attribute" and step.key == "state":
            return Verdict("optimizer-state", say("it is state of the optimizer, which no `.to()` of the model moves"))
    if is_tensor(evidence.value) and not any(is_module(step.owner) for step in steps):
        for step in steps:
            if _is_wrapped_optimizer(step.owner) and _may_be_copy(evidence.value, step.owner):
                name = route.container().text if route is not None else None
                return Verdict(
                    "optimizer-state", say("it is a copy that the optimizer keeps beside the parameters"), name
                )
    return None


def _is_wrapped_optimizer(owner: object) -> bool:
    """An object of the user's that steps: it has a method `step` and an optimizer inside."""
    if is_module(owner) or is_optimizer(owner):
        return is_optimizer(owner)
    return "step" in names_of_class(type(owner)) and any(is_optimizer(value) for value in instance_dict(owner).values())


def _may_be_copy(tensor: object, owner: object) -> bool:
    """Whether it has the shape of a parameter that an optimizer inside `owner` holds, and is none of them."""
    optimizers = [value for value in instance_dict(owner).values() if is_optimizer(value)]
    optimizers += [owner] if is_optimizer(owner) else []
    groups = [group for optimizer in optimizers for group in attribute(optimizer, "param_groups")]
    held = [parameter for group in groups for parameter in group.get("params", ())]
    if is_parameter(tensor) or any(parameter is tensor for parameter in held):
        return False
    return any(shape_of(parameter) == shape_of(tensor) for parameter in held)


def _module(evidence: Evidence) -> Verdict | None:
    """Parameters, buffers, and modules themselves."""
    suspect = evidence.suspect
    if suspect is None or suspect.route is None or not _is_registered(evidence):
        return None
    route = suspect.route
    if evidence.discarded is not None:
        return None
    return (
        _criterion(route)
        or _made_in_forward(evidence, route)
        or _hidden_in_container(evidence, route)
        or _misplaced_model(evidence, route)
    )


def _is_registered(evidence: Evidence) -> bool:
    if is_module(evidence.value):
        return True
    steps = evidence.steps()
    return bool(steps) and steps[-1].kind in ("parameter", "buffer")


def _criterion(route: Route) -> Verdict | None:
    owners = [step.owner for step in route.steps if is_module(step.owner)]
    if is_module(route.value):
        owners.append(route.value)
    for owner in owners:
        kind = name_of_class(type(owner))
        if module_of_class(type(owner)) == "torch.nn.modules.loss" or LOSS.search(kind):
            return Verdict(
                "criterion-not-moved", say("it belongs to the loss {kind}, which was never moved", kind=kind)
            )
    return None


def _made_in_forward(evidence: Evidence, route: Route) -> Verdict | None:
    made = evidence.made
    if made is None or made.function != "forward" or makes_module(made.statement) is None:
        return None
    reason = say("the module is constructed in forward, on the default device")
    kept = made.statement.targets[0] if isinstance(made.statement, ast.Assign) else None
    name = made.source.text_of(kept) if kept is not None else _whole_module(evidence, route)
    return Verdict("module-created-in-forward", reason, name)


def _hidden_in_container(evidence: Evidence, route: Route) -> Verdict | None:
    """A module or parameter in a plain list or dict of a module: `Module.to` does not see it."""
    index = route.plain_container()
    if index is None:
        return None
    step = route.steps[index]
    name = Route(route.frame, route.base, route.scope, route.steps[: index + 1], None).text
    if _is_second(str(step.key), evidence.value, route.steps[index + 2 :]):
        reason = say("{name} holds models of their own, out of reach of `.to()`", name=name)
        return Verdict("second-model-not-moved", reason, name)
    reason = say("{name} is a plain container, so `.to()` of the module does not reach it", name=name)
    return Verdict("plain-container", reason, name, _where_filled(step, evidence.made))


def _where_filled(step: Step, made: Made | None) -> Made | None:
    """The line that fills the container, where the recorded one is inside the class of what it holds."""
    around = made.source.class_at(made.line) if made is not None else None
    inside = around is not None and around.name != name_of_class(type(step.owner))
    return only_assignment(step) if inside else None


def _is_second(name: str, value: object, rest: tuple[Step, ...]) -> bool:
    if is_called_second(name):
        return True
    module = value if is_module(value) else next((step.owner for step in rest if is_module(step.owner)), None)
    parameters = parameters_of_module(module)
    return bool(parameters) and not any(requires_grad(parameter) for parameter in parameters)


def _misplaced_model(evidence: Evidence, route: Route) -> Verdict | None:
    root = _root(route)
    if root is None:
        return None
    module, name = root
    devices = devices_of_parameters(module)
    accelerators = devices - {"cpu"}
    if len(accelerators) > 1:
        return Verdict(
            "split-model", say("the parts of {name} are on {devices}", name=name, devices=listed(sorted(devices)))
        )
    others = [other for other in evidence.models() if not holds_module(other.value, module)]
    on_expected = [other for other in others if devices_of_parameters(other.value) == {evidence.expected}]
    if evidence.made is not None and evidence.device != "cpu" and evidence.made.fixes_device:
        return Verdict(
            "hardcoded-device",
            say("its device is fixed where it was moved, and {expected} is in use", expected=evidence.expected),
        )
    wrong = _whole_module(evidence, route)
    if wrong is None:
        return None  # a single tensor of a module that is elsewhere: it was put there apart
    if evidence.made is not None and evidence.made.event == "loaded" and evidence.device != "cpu":
        return Verdict(
            "checkpoint-map-location",
            say("torch.load put {wrong} on {device}", wrong=wrong, device=evidence.device),
            wrong,
        )
    outside = _named_outside(evidence, module) if name == wrong == "self" else None
    if on_expected and len(devices) == 1:
        known = outside.name if outside is not None else name
        reason = say(
            "{name} is on {expected}; {known} is on {device}",
            name=on_expected[0].text,
            expected=evidence.expected,
            known=known,
            device=evidence.device,
        )
        made = in_source(outside) if outside is not None else None
        return Verdict("second-model-not-moved", reason, known if outside is not None else wrong, made)
    known = outside.name if outside is not None else wrong
    reason = say(
        "{known} is on {device}, its input on {expected}",
        known=known,
        device=evidence.device,
        expected=evidence.expected,
    )
    was_moved = evidence.made is not None and evidence.made.event == "moved"
    return Verdict("model-not-moved", reason, known, in_source(outside) if outside and not was_moved else None)


def _named_outside(evidence: Evidence, module: object) -> Suspect | None:
    """What the callers call the object whose method runs: its own word for itself, `self`, helps nobody."""
    for depth in range(len(evidence.frames) - 1, -1, -1):
        frame = evidence.frames[depth]
        if frame.frame.f_locals.get("self") is module:
            continue
        route = next(search(frame, lambda value: value is module), None)
        if route is not None:
            return follow_route(route, evidence.frames, depth)
    return None


def _whole_module(evidence: Evidence, route: Route) -> str | None:
    """The outermost module on the route that is on the wrong device as a whole, by the text that reaches it."""
    for index in range(len(route.steps) + 1):
        owner = route.steps[index].owner if index < len(route.steps) else route.value
        if is_module(owner) and devices_of_parameters(owner) == {evidence.device}:
            return Route(route.frame, route.base, route.scope, route.steps[:index], owner).text
    return None


def _root(route: Route) -> tuple[object, str] | None:
    """The outermost module on the route whose `.to()` reaches the end of it, by the text that leads there."""
    found = None
    for index, step in enumerate(route.steps):
        if is_module(step.owner) and found is None:
            found = step.owner, Route(route.frame, route.base, route.scope, route.steps[:index], None).text
        if found is not None and step.kind == "attribute":  # it is not registered: past here is a model of its own
            found = None
    return found or ((route.value, route.text) if is_module(route.value) else None)
