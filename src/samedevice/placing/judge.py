"""From what lives where to what is wrong: one pure function, `judge`. It meets no tensor and no torch.

What is a fault, in the order of the flow:

1. model: it is not on the device that was asked for; it is split over the CPU and one accelerator and nothing says that
   this is on purpose; it holds what `.to()` passes by (`judge_passed_by.py`).
2. inputs, then the criterion: tensors on a device where the model is not.
3. optimizer (`judge_optimizer.py`): state away from its parameter, `step` away from where it belongs; parameters that
   the model does not have, and those of the model that no optimizer has.

What is none: a 0-dim CPU tensor beside an accelerator (TensorIterator lets it join), a model on several accelerators or
with dispatch hooks, and whatever lives where it should.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from samedevice.findings import Finding, Placement
from samedevice.placing.blame import blame, joins_any, listed
from samedevice.placing.cover import cover
from samedevice.placing.judge_optimizer import judge_optimizer
from samedevice.placing.judge_passed_by import judge_passed_by
from samedevice.texts import Text, say, say_number

__all__ = ["Flow", "home_of_model", "is_on_purpose", "judge"]

REGISTERED = ("parameter", "buffer")
NO_ACCELERATOR = ("cpu", "meta")


@dataclass(frozen=True, slots=True)
class Flow:
    """What placements alone do not say."""

    device: str | None = None
    """Where everything should be; None to judge by where the model is."""
    multi_device: bool | None = None
    """Whether the model is on several devices on purpose; None where only the placements tell."""
    moves_inputs: bool = False
    """Whether the model moves what it is given (DataParallel, dispatch hooks, `align_inputs`)."""
    models: tuple[str, ...] = ("model",)
    """The names of the models, where several were given."""
    starts_from: str | None = None
    """Where DataParallel wants its module."""


def judge(placements: Sequence[Placement], flow: Flow | None = None) -> tuple[Finding, ...]:
    """The faults among `placements`, in the order model, inputs, criterion, optimizer.

    Args:
        placements: what lives where, as `check` collects it.
        flow: what is known beside it.

    Returns:
        The findings; none where all is as it should be.
    """
    flow = flow or Flow()
    model, batch, criterion, optimizer = (
        [placement for placement in placements if placement.role == role]
        for role in ("model", "batch", "criterion", "optimizer")
    )
    findings = [*_model(model, batch, flow)]
    wanted = _devices(model)
    if not is_on_purpose(model, flow):
        # A model that was left behind is the fault, and not the batch that awaits it elsewhere.
        home = findings[0].expected_device if findings else flow.device
        wanted = (home,) if home else wanted
    findings += judge_passed_by(model, wanted, flow.device)
    findings += _gradients([*model, *criterion])
    findings += [] if flow.moves_inputs else _batch(batch, wanted)
    findings += _criterion(criterion, wanted or _devices(batch))
    findings += judge_passed_by(criterion, wanted, flow.device)
    findings += judge_optimizer(optimizer)
    return tuple(findings)


def is_on_purpose(model: Sequence[Placement], flow: Flow) -> bool:
    """Whether the model's parameters are on several devices by its author's will: told, or on several accelerators."""
    if flow.multi_device is not None:
        return flow.multi_device
    parameters = {placement.device for placement in model if placement.kind == "parameter"}
    return len(parameters.difference(NO_ACCELERATOR)) > 1


def home_of_model(model: Sequence[Placement]) -> str | None:
    """Where the model lives: on the accelerator with most of its tensors, else on the CPU."""
    counts = Counter(placement.device for placement in _registered(model))
    accelerators = [device for device in counts if device not in NO_ACCELERATOR]
    return max(accelerators or counts, key=counts.__getitem__, default=None)


def _registered(placements: Sequence[Placement]) -> list[Placement]:
    return [placement for placement in placements if placement.kind in REGISTERED and not joins_any(placement)]


def _devices(placements: Sequence[Placement]) -> tuple[str, ...]:
    """The devices of a model's or a batch's tensors, in order of appearance."""
    return tuple(dict.fromkeys(p.device for p in placements if p.kind in (*REGISTERED, "input") and not joins_any(p)))


def _rank(device: str | None) -> int:
    """Of two devices that model and inputs are on, the one with the higher rank is where the work is to be done."""
    return (*reversed(NO_ACCELERATOR), device).index(device)


def _model(model: Sequence[Placement], batch: Sequence[Placement], flow: Flow) -> Iterator[Finding]:
    registered = _registered(model)
    if not registered:
        return
    if is_on_purpose(model, flow):
        yield from _buffers_apart(registered)
        return
    home = flow.starts_from or flow.device or home_of_model(model)
    astray = [placement for placement in registered if placement.device != home]
    if not astray:
        awaited = next((d for d in _devices(batch) if _rank(d) > _rank(home)), None)
        if flow.device is None and awaited and not flow.moves_inputs:
            yield _left_behind("SD102", registered, registered, awaited, say("The inputs are there already."))
        return
    names = cover([p.path for p in astray], [p.path for p in registered])
    if flow.starts_from is not None:
        reason = say("DataParallel starts from the first of its device_ids.")
        yield _left_behind("SD116", astray, registered, home, reason)
    elif len(flow.models) > 1 and set(names) < set(flow.models):
        yield _left_behind("SD119", astray, registered, home, say("The other model is there already."))
    elif len(astray) == len(registered):
        yield _left_behind("SD102", astray, registered, home, say("{device} was asked for.", device=home or ""))
    else:
        there = len(registered) - len(astray)
        reason = say_number(
            "{number} of {all} tensors is on {device}.",
            "{number} of {all} tensors are on {device}.",
            there,
            all=len(registered),
            device=home or "",
        )
        yield _left_behind("SD115", astray, registered, home, reason)


def _left_behind(
    code: str, astray: Sequence[Placement], registered: Sequence[Placement], expected: str | None, reason: str
) -> Finding:
    names = cover([placement.path for placement in astray], [placement.path for placement in registered])
    fix: str = f'{names[0]}.to("{expected}")'
    if astray[0].device == "meta":
        made = f'{names[0]}.to_empty(device="{expected}")'
        fix = say("{code}, then load its weights: on meta it has none", code=made)
    return blame(
        code,
        astray,
        say_number(
            "{names} is on {device}, not on {expected}.",
            "{names} are on {device}, not on {expected}.",
            len(names),
            names=listed(names),
            device=_on(astray),
            expected=expected or "",
        ),
        name=names[0],
        expected=expected,
        reasons=(reason,),
        fix=fix,
    )


def _buffers_apart(registered: Sequence[Placement]) -> Iterator[Finding]:
    """In a model on several devices: buffers away from the parameters of their own module."""
    for buffer in registered:
        if buffer.kind == "buffer" and buffer.owner_device not in (None, buffer.device):
            yield blame(
                "SD115",
                [buffer],
                say(
                    "{name} is on {device}, the parameters of its module are on {expected}.",
                    name=buffer.path,
                    device=buffer.device,
                    expected=buffer.owner_device or "",
                ),
                expected=buffer.owner_device,
                fix=f'{buffer.path} = {buffer.path}.to("{buffer.owner_device}")',
            )


def _batch(batch: Sequence[Placement], wanted: Sequence[str]) -> Iterator[Finding]:
    inputs = [placement for placement in batch if placement.kind == "input" and not joins_any(placement)]
    on_model = bool(wanted)
    wanted = wanted or [device for device in _devices(batch) if device not in NO_ACCELERATOR]
    astray = [placement for placement in inputs if wanted and placement.device not in wanted]
    if not astray:
        return
    names = cover([placement.path for placement in astray], [placement.path for placement in inputs])
    partly = len(astray) < len(inputs)
    yield blame(
        "SD108" if partly else "SD101",
        astray,
        _apart(names, astray, wanted) if on_model else _apart_from_the_rest(names, astray, wanted),
        name=names[0],
        expected=wanted[0],
        reasons=(_in_place(len(inputs) - len(astray), len(inputs)),) if partly else (),
        fix=f'batch = samedevice.move_to_device(batch, "{wanted[0]}")',
    )


def _apart(names: Sequence[str], astray: Sequence[Placement], wanted: Sequence[str]) -> Text:
    return say_number(
        "{names} is on {device}, the model is on {expected}.",
        "{names} are on {device}, the model is on {expected}.",
        len(names),
        names=listed(names),
        device=_on(astray),
        expected=listed(wanted),
    )


def _apart_from_the_rest(names: Sequence[str], astray: Sequence[Placement], wanted: Sequence[str]) -> Text:
    return say_number(
        "{names} is on {device}, the rest of the batch is on {expected}.",
        "{names} are on {device}, the rest of the batch is on {expected}.",
        len(names),
        names=listed(names),
        device=_on(astray),
        expected=listed(wanted),
    )


def _in_place(there: int, total: int) -> Text:
    return say_number(
        "{number} of the batch's {all} tensors is in place.",
        "{number} of the batch's {all} tensors are in place.",
        there,
        all=total,
    )


def _gradients(model: Sequence[Placement]) -> Iterator[Finding]:
    for gradient in model:
        if gradient.kind == "gradient":
            yield blame(
                "SD900",
                [gradient],
                say(
                    "{name} is on {device}, its parameter on {expected}.",
                    name=gradient.path,
                    device=gradient.device,
                    expected=gradient.owner_device or "",
                ),
                expected=gradient.owner_device,
                reasons=(say("The next backward adds to a gradient that was left behind when `.data` was moved."),),
                fix="optimizer.zero_grad(set_to_none=True)",
            )


def _criterion(criterion: Sequence[Placement], wanted: Sequence[str]) -> Iterator[Finding]:
    tensors = [placement for placement in criterion if placement.kind in (*REGISTERED, "argument")]
    astray = [p for p in tensors if wanted and p.device not in wanted and not joins_any(p)]
    if not astray:
        return
    names = [placement.path for placement in astray]
    if astray[0].kind == "argument":
        moved, reason = names[0], say("What `functools.partial` holds is moved by no `.to()`.")
    else:
        moved = "criterion"
        reason = say("A loss that holds tensors is a module as well: it moves by a `.to()` of its own.")
    yield blame(
        "SD122",
        astray,
        _apart(names, astray, wanted),
        expected=wanted[0],
        reasons=(reason,),
        fix=f'{moved} = {moved}.to("{wanted[0]}")',
    )


def _on(astray: Sequence[Placement]) -> str:
    return listed(list(dict.fromkeys(placement.device for placement in astray)))
