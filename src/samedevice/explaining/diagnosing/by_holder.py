"""Causes told by what holds the tensor: an attribute, a container, a global variable, a batch."""

from __future__ import annotations

import ast
import re

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict, spanning_model
from samedevice.explaining.diagnosing.moved_in_source import moved_elsewhere, moves_in_source
from samedevice.explaining.diagnosing.recurrent import recurrent
from samedevice.explaining.diagnosing.second_models import is_copied, keeps_weights
from samedevice.explaining.drawn_from import drawn_from
from samedevice.explaining.live import (
    device_of,
    instance_dict,
    is_kind,
    is_module,
    is_optimizer,
    is_tensor,
    name_of_class,
    names_of_class,
    tensors_of_module,
)
from samedevice.explaining.reading import MISSING, item, members
from samedevice.explaining.routes import Route, Step, search_all
from samedevice.explaining.set_in_class import only_assignment
from samedevice.explaining.syntax import call_name, move_calls, undressed
from samedevice.explaining.vocabulary import LOSS
from samedevice.explaining.where_made import default_argument
from samedevice.texts import say, say_number

__all__ = ["judge"]

_METRIC = re.compile(r"Metric|(^|[a-z])Meter|Score|Accura|Precision|Recall|Confusion|Average|Statistic|Evaluat|Monitor")
_MOST_SISTERS = 2_000
_IN_PLACE = ("add", "sub", "mul", "div", "index_add", "scatter_add", "index_put", "copy", "maximum", "minimum")


def judge(evidence: Evidence) -> Verdict | None:
    """The cause that the holder's kind settles."""
    if evidence.suspect is None:
        return None
    return (
        _second_copy(evidence)
        or _drawn(evidence)
        or _accumulator(evidence)
        or _collected(evidence)
        or recurrent(evidence)
        or _global(evidence)
        or _attribute(evidence)
        or _entry(evidence)
    )


def _second_copy(evidence: Evidence) -> Verdict | None:
    """Averaged or target weights, kept beside the model by an object of their own."""
    route = evidence.suspect.route if evidence.suspect is not None else None
    home = evidence.home()
    if route is None or (home is not None and (is_module(home.owner) or home.kind != "attribute")):
        return None
    if home is None:
        kept = keeps_weights(evidence, *([route.base] if route.steps else [])) or is_copied(evidence)
    else:
        kept = keeps_weights(evidence, str(home.key), name_of_class(type(home.owner)))
    if not kept:
        return None
    name = route.container().text
    return Verdict(
        "second-model-not-moved",
        say("{name} keeps weights of a second model, which move with no other", name=name),
        name,
    )


def _drawn(evidence: Evidence) -> Verdict | None:
    """A sample is where the parameters of its distribution are, and those no `.to()` of the module reaches."""
    drawn = drawn_from(evidence.made, evidence.frames)
    if drawn is None or evidence.device != "cpu":
        return None
    route, step, distribution = drawn
    reason = say(
        "it is drawn from {name}: a {kind} is no module, and nothing moves it",
        name=route.text,
        kind=name_of_class(type(distribution)),
    )
    return Verdict("plain-attribute", reason, route.text, only_assignment(step))


def _accumulator(evidence: Evidence) -> Verdict | None:
    """`total += loss` into a tensor that was made before the loop, on the CPU."""
    home = evidence.home()
    if home is not None and is_module(home.owner):
        return None
    if not evidence.seen or evidence.value is None or not _writes_in_place(evidence):
        return None
    if evidence.seen[0].tensor is not evidence.value and not _same_name(evidence):
        return None
    if home is None and not _outlives_the_loop(evidence):
        return None
    return Verdict("metric-state", say("results are added into it in place, so it has to be where they are"))


def _outlives_the_loop(evidence: Evidence) -> bool:
    """Whether a loop runs around the failing line that the variable was made before."""
    suspect, frame = evidence.suspect, evidence.frame
    if suspect is None or frame is None or suspect.binding is None:
        return False
    bound = suspect.binding.line
    loops = suspect.frame.source.loops_around(suspect.frame.line)
    return any(not loop.lineno <= bound <= (loop.end_lineno or 0) for loop in loops)


def _collected(evidence: Evidence) -> Verdict | None:
    """Results of many batches in a list, joined at the end: they are where each was computed."""
    if evidence.operation not in ("cat", "stack") or not evidence.steps() or evidence.made is None:
        return None
    last = evidence.steps()[-1]
    if last.kind != "item" or type(last.owner) is not list or evidence.made.event != "computed":
        return None
    if "cpu" not in (evidence.device, evidence.expected) and spanning_model(evidence):
        return None
    return Verdict("metric-state", say("results are collected where each was computed, and joined here"))


def _writes_in_place(evidence: Evidence) -> bool:
    operation = evidence.fault.operation if evidence.fault is not None else ""
    if not operation:
        running = evidence.frame.running if evidence.frame is not None else None
        return isinstance(running, ast.AugAssign)
    base = operation.rpartition("::")[2].partition(".")[0]
    return base.endswith("_") and base.strip("_") in _IN_PLACE


def _same_name(evidence: Evidence) -> bool:
    first = evidence.seen[0]
    return first.route is not None and evidence.suspect is not None and first.route.text == evidence.suspect.name


def _attribute(evidence: Evidence) -> Verdict | None:
    home = _lasting_home(evidence)
    if home is None or is_tensor(home[0].owner):
        return None
    step, route = home
    in_container = bool(route.steps) and route.steps[-1].kind == "item"
    walked = evidence.suspect is not None and route is evidence.suspect.route
    container = route.container().text if in_container and (walked or is_module(step.owner)) else None
    if is_module(step.owner):
        if _is_loss_alone(evidence, step.owner):
            kind = name_of_class(type(step.owner))
            reason = say("the loss {kind} keeps it, and nothing moved it to the logits", kind=kind)
            return Verdict("criterion-not-moved", reason, container)
        if _is_default(step):
            name = name_of_class(type(step.owner))
            return Verdict(
                "metric-state", say("it is state of a {name}, and nothing moved the metric to its inputs", name=name)
            )
        if in_container:
            reason = say(
                "{container} is a plain container, so the module's `.to()` does not see the tensors in it",
                container=container or "",
            )
            return Verdict("plain-container", reason, container)
        reason = say("it is a plain attribute, no buffer, so the module's `.to()` leaves it behind")
        return Verdict("plain-attribute", reason, made=only_assignment(step))
    return _of_plain_object(evidence, step, container)


def _is_default(step: Step) -> bool:
    """Whether the owner lists it in `_defaults`, as torchmetrics does what its own `.to` moves."""
    defaults = instance_dict(step.owner).get("_defaults")
    return is_kind(defaults, dict) and item(defaults, step.key) is not MISSING


def _is_loss_alone(evidence: Evidence, owner: object) -> bool:
    """Whether it is a loss that no model holds and that holds nothing where the rest is: nobody called its `.to()`.

    One that has nothing to show where it is may have been moved: then the source says so.
    """
    if not LOSS.search(name_of_class(type(owner))):
        return False
    registered = [device_of(tensor) for _, _, tensor in tensors_of_module(owner)]
    if evidence.expected in registered or (not registered and _is_moved_in_source(evidence, owner)):
        return False
    return any(route.value is owner for route in evidence.models())


def _is_moved_in_source(evidence: Evidence, owner: object) -> bool:
    """Whether a line of the frames' own code moves what is called like `owner`, or makes it and moves it at once."""
    names = {(id(frame), name) for frame in evidence.frames for name, value in frame.frame.f_locals.items()
             if value is owner and name != "self"}  # fmt: skip
    for frame in evidence.frames:
        for call in move_calls(frame.definition or frame.source.tree):
            moved = undressed(call.func.value) if isinstance(call.func, ast.Attribute) else None
            if isinstance(moved, ast.Name) and (id(frame), moved.id) in names:
                return True
            if isinstance(moved, ast.Call) and call_name(moved) == name_of_class(type(owner)):
                return True
    return False


def _of_plain_object(evidence: Evidence, step: Step, container: str | None) -> Verdict:
    kind = type(step.owner)
    called = name_of_class(kind)
    name = say("an {kind}", kind=called) if called[:1] in "AEIOU" else say("a {kind}", kind=called)
    if _keeps_score(kind):
        return Verdict(
            "metric-state", say("it is state of {name}, which collects results and is no module", name=name), container
        )
    if _moves_parts(step, evidence) or _is_beside_moved(step.owner, evidence):
        return Verdict(
            "nested-batch", say("what is beside it was moved; this {kind}'s was not", kind=called), container
        )
    return Verdict("plain-attribute", say("{name} is no module: nothing moves what it holds", name=name), container)


def _keeps_score(kind: type) -> bool:
    methods = names_of_class(kind)
    if "update" in methods and methods & {"compute", "reset", "result", "value", "summary", "mean", "get"}:
        return True
    return _METRIC.search(name_of_class(kind)) is not None and bool(methods & {"update", "add", "compute"})


def _moves_parts(step: Step, evidence: Evidence) -> bool:
    """Whether sister tensors were moved to where this one should be, or its class has a `.to` of its own."""
    sisters = [value for key, value in instance_dict(step.owner).items() if key is not step.key and is_tensor(value)]
    if {"to", "cuda"} & names_of_class(type(step.owner)):
        return True
    return any(device_of(each) == evidence.expected and _was_moved(each, evidence) for each in sisters)


def _is_beside_moved(owner: object, evidence: Evidence) -> bool:
    """Whether the object is an entry of a batch whose tensors are where this one should be."""
    for route in search_all(reversed(evidence.frames), lambda value: value is owner):
        if route.steps and route.steps[-1].kind == "item":
            sisters = [value for _, _, value in members(route.steps[-1].owner) if is_tensor(value)]
            if any(device_of(sister) == evidence.expected and _was_moved(sister, evidence) for sister in sisters):
                return True
    return False


def _lasting_home(evidence: Evidence) -> tuple[Step, Route] | None:
    """The attribute that holds the tensor, on the way that the walk took or on another."""
    suspect = evidence.suspect
    if suspect is None:
        return None
    routes = [suspect.route] if suspect.route is not None else []
    for route in [*routes, *evidence.homes_elsewhere()]:
        step = next((step for step in reversed(route.steps) if step.kind != "item"), None)
        if (
            step is not None
            and step.kind == "attribute"
            and not (_is_namespace(step.owner) or is_optimizer(step.owner))
        ):
            return step, route
    return None


def _is_namespace(owner: object) -> bool:
    """A bag of values rather than an object with a behaviour: its fields are entries of a batch."""
    return name_of_class(type(owner)) in ("SimpleNamespace", "Namespace", "AttrDict", "EasyDict", "Munch")


def _global(evidence: Evidence) -> Verdict | None:
    """A constant of the file, of an enclosing function, or of the function's own head."""
    suspect = evidence.suspect
    route = suspect.route if suspect is not None else None
    if suspect is None or route is None:
        return None
    if default_argument(suspect) is not None and not route.steps:
        return Verdict(
            "global-tensor", say("{name} keeps its default, made once when the function was defined", name=route.base)
        )
    home = evidence.home()
    if home is not None and (is_module(home.owner) or _keeps_score(type(home.owner))):
        return None
    if route.scope == "global":
        return Verdict(
            "global-tensor", say("{name} is read from the module's level, past every `.to()`", name=route.base)
        )
    if route.scope == "closure":
        return Verdict(
            "global-tensor", say("{name} is kept by the enclosing function, past every `.to()`", name=route.base)
        )
    return None


def _entry(evidence: Evidence) -> Verdict | None:
    """One entry of a batch among others that were moved."""
    suspect = evidence.suspect
    route = suspect.route if suspect is not None else None
    if suspect is None or route is None or not route.steps:
        return None
    sisters = [sister for sister in _tensors_in(route.steps[0].owner) if device_of(sister) == evidence.expected]
    moved = [sister for sister in sisters if _was_moved(sister, evidence)]
    if moved:
        reason = say_number(
            "{number} other tensor of {name} is on {expected}; this one is not",
            "{number} other tensors of {name} are on {expected}; this one is not",
            len(moved),
            name=route.base,
            expected=evidence.expected,
        )
        return Verdict("nested-batch", reason)
    if evidence.made is not None and not evidence.made.recorded and suspect.binding is not None and not sisters:
        if not moves_in_source(route) or moved_elsewhere(route, evidence.expected) is not None:
            return None
        return Verdict("nested-batch", say("the line that moves {name} does not reach it", name=route.base))
    return None


def _was_moved(sister: object, evidence: Evidence) -> bool:
    """Whether it was brought to its device. One that was made there, or computed where the wrong one was made, was not.

    Without a record it counts as moved.
    """
    if evidence.origins is None:
        return True
    origin, root = evidence.origins.origin_of(sister), evidence.origins.root_of(sister)
    if origin is None or root is None:
        return True
    made = evidence.made
    together = made is not None and (made.file, made.function) == (origin.file, origin.function)
    return origin.event == "moved" or (root.event == "moved" and not together)


def _tensors_in(root: object) -> list[object]:
    found, queue, seen = [], [root], set[int]()
    while queue and len(seen) < _MOST_SISTERS:
        value = queue.pop()
        if is_tensor(value):
            found.append(value)
        elif id(value) not in seen and not is_module(value):
            seen.add(id(value))
            queue.extend(inner for _, _, inner in members(value))
    return found
