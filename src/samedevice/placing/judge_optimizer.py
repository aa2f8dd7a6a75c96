"""Part of `judge`: the optimizer's state and parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from samedevice.findings import Finding, Placement
from samedevice.placing.blame import blame, listed

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
        f"{_are(tensors, device)} and needed on {expected}",
        expected=expected,
        reasons=("A model's `.to()` moves parameters and gradients; what an optimizer keeps for them stays behind.",),
        fix=SYNC,
    )


def _host_state(tensors: Sequence[Placement], device: str, expected: str) -> Finding:
    return blame(
        "SD201",
        tensors,
        f"{_are(tensors, device)} and read on the CPU",
        expected=expected,
        reasons=("Without `capturable` or `fused` each step waits until the device has sent the number.",),
        fix=SYNC,
        severity="warning",
    )


def _attribute(tensors: Sequence[Placement], device: str, expected: str) -> Finding:
    return blame(
        "SD201",
        tensors,
        f"{_are(tensors, device)}, the parameters are on {expected}",
        expected=expected,
        reasons=("It is an attribute of the optimizer and no part of its state, so nothing moves it.",),
        fix=f'{tensors[0].path} = {tensors[0].path}.to("{expected}")',
        severity="warning",
    )


def _are(tensors: Sequence[Placement], device: str) -> str:
    return f"{listed([p.path for p in tensors])} {'is' if len(tensors) == 1 else 'are'} on {device}"


def _parameters(optimizer: Sequence[Placement]) -> Iterator[Finding]:
    stale, held, unheld = (
        [placement for placement in optimizer if placement.kind == f"{kind} parameter"]
        for kind in ("stale", "held", "unheld")
    )
    if stale:
        names = [placement.path for placement in stale]
        which = f"{listed(names)} {'is' if len(names) == 1 else 'are'} none" if held else "the optimizer has none"
        missing = f" No optimizer trains {listed([p.path for p in unheld])} of the model." if unheld else ""
        yield blame(
            "SD202",
            stale,
            f"{which} of the model's parameters",
            name=None if held else "optimizer",
            reasons=("The optimizer steps on tensors that the model no longer uses; nothing is raised." + missing,),
            fix="make the optimizer after the last change to the model's parameters",
        )
    elif unheld:
        names = [placement.path for placement in unheld]
        yield blame(
            "SD202",
            unheld,
            f"{listed(names)} {'requires' if len(names) == 1 else 'require'} grad and no optimizer has "
            f"{'it' if len(names) == 1 else 'them'}",
            reasons=("A parameter that is added or replaced after the optimizer was made is not trained.",),
            fix="optimizer.add_param_group({'params': [...]}), or requires_grad_(False) where it should stay as it is",
            severity="warning",
        )
