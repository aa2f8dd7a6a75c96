"""Part of `judge`: the optimizer's state and parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from samedevice.findings import Finding, Placement
from samedevice.placing.blame import blame, listed
from samedevice.texts import Text, say, say_number

__all__ = ["judge_optimizer"]

SYNC = "samedevice.sync_optimizer(optimizer)"


def judge_optimizer(optimizer: Sequence[Placement]) -> Iterator[Finding]:
    """What is wrong with an optimizer.

    Args:
        optimizer: its placements. Kinds: state, host state, group tensor and attribute, with `owner_device` where each
            belongs; free state, which may be there or on the CPU; "held parameter", which the model has, "stale
            parameter", which it has not, and "unheld parameter": one of the model's that no optimizer has.

    Yields:
        State astray, by device; `step` and its kind where they slow each step down; then the parameters.
    """
    astray: dict[tuple[str, str, str], list[Placement]] = {}
    for placement in optimizer:
        if placement.kind != "free state" and placement.owner_device not in (None, placement.device):
            astray.setdefault((placement.kind, placement.device, placement.owner_device or ""), []).append(placement)
    for (kind, device, expected), tensors in astray.items():
        yield {"host state": _host_state, "attribute": _attribute}.get(kind, _state)(tensors, device, expected)
    yield from _parameters(optimizer)


def _state(tensors: Sequence[Placement], device: str, expected: str) -> Finding:
    return blame(
        "SD201",
        tensors,
        say_number(
            "{names} is on {device} and needed on {expected}.",
            "{names} are on {device} and needed on {expected}.",
            len(tensors),
            **_places(tensors, device, expected),
        ),
        expected=expected,
        reasons=(
            say("A model's `.to()` moves parameters and gradients; what an optimizer keeps for them stays behind."),
        ),
        fix=SYNC,
    )


def _host_state(tensors: Sequence[Placement], device: str, expected: str) -> Finding:
    return blame(
        "SD201",
        tensors,
        say_number(
            "{names} is on {device} and read on the CPU.",
            "{names} are on {device} and read on the CPU.",
            len(tensors),
            names=listed([p.path for p in tensors]),
            device=device,
        ),
        expected=expected,
        reasons=(say("Without `capturable` or `fused` each step waits until the device has sent the number."),),
        fix=SYNC,
        severity="warning",
    )


def _attribute(tensors: Sequence[Placement], device: str, expected: str) -> Finding:
    return blame(
        "SD201",
        tensors,
        say_number(
            "{names} is on {device}, the parameters are on {expected}.",
            "{names} are on {device}, the parameters are on {expected}.",
            len(tensors),
            **_places(tensors, device, expected),
        ),
        expected=expected,
        reasons=(say("It is an attribute of the optimizer and no part of its state, so nothing moves it."),),
        fix=f'{tensors[0].path} = {tensors[0].path}.to("{expected}")',
        severity="warning",
    )


def _places(tensors: Sequence[Placement], device: str, expected: str) -> dict[str, str]:
    return {"names": listed([p.path for p in tensors]), "device": device, "expected": expected}


def _parameters(optimizer: Sequence[Placement]) -> Iterator[Finding]:
    stale, held, unheld = (
        [placement for placement in optimizer if placement.kind == f"{kind} parameter"]
        for kind in ("stale", "held", "unheld")
    )
    if stale:
        yield blame(
            "SD202",
            stale,
            _stale(stale) if held else say("the optimizer has none of the model's parameters."),
            name=None if held else "optimizer",
            reasons=_why_stale(unheld),
            fix=say("make the optimizer after the last change to the model's parameters"),
        )
    elif unheld:
        yield blame(
            "SD202",
            unheld,
            _unheld(unheld),
            reasons=(say("A parameter that is added or replaced after the optimizer was made is not trained."),),
            fix=say(
                "optimizer.add_param_group({{'params': [...]}}), or requires_grad_(False) where it should stay as it is"
            ),
            severity="warning",
        )


def _stale(stale: Sequence[Placement]) -> Text:
    return say_number(
        "{names} is none of the model's parameters.",
        "{names} are none of the model's parameters.",
        len(stale),
        names=listed([p.path for p in stale]),
    )


def _why_stale(unheld: Sequence[Placement]) -> tuple[Text, ...]:
    steps = say("The optimizer steps on tensors that the model no longer uses; nothing is raised.")
    if not unheld:
        return (steps,)
    return steps, say("No optimizer trains {names} of the model.", names=listed([p.path for p in unheld]))


def _unheld(unheld: Sequence[Placement]) -> Text:
    return say_number(
        "{names} requires grad and no optimizer has it.",
        "{names} require grad and no optimizer has them.",
        len(unheld),
        names=listed([p.path for p in unheld]),
    )
