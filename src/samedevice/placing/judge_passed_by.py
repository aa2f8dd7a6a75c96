"""Part of `judge`: what a module holds and its `.to()` passes by. One finding for each attribute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from samedevice.findings import Finding, Placement
from samedevice.placing.blame import blame, joins_any
from samedevice.texts import Text, say, say_number

__all__ = ["judge_passed_by"]

KINDS = (
    *("plain attribute", "container tensor", "container parameter", "helper tensor", "helper parameter"),
    "self-moved attribute",
)
_FLOATING = ("torch.float", "torch.bfloat", "torch.complex")


def judge_passed_by(placements: Sequence[Placement], wanted: Sequence[str], device: str | None) -> Iterator[Finding]:
    """What `.to()` passes by and is, or will be, elsewhere than the module that holds it.

    Args:
        placements: those of one role.
        wanted: the devices where the model is, or should be; the first is for tensors of modules without a device.
        device: where everything was asked to be; None where the model may still move.

    Yields:
        An error where a tensor is away from the parameters around it; a warning where it lies on the CPU beside them
        and will stay there when they move. An integer tensor on the CPU is a warning too: it may serve as an index.
    """
    held: dict[str, list[Placement]] = {}
    for placement in placements:
        if placement.kind in KINDS and not joins_any(placement):
            held.setdefault(placement.holder or placement.path, []).append(placement)
    for holder, tensors in held.items():
        astray = [p for p in tensors if _expected(p, wanted, device) not in (None, p.device)]
        if astray:
            expected = _expected(astray[0], wanted, device)
            yield _elsewhere(holder, [p for p in astray if p.device != expected], expected)
        elif device is None and all(p.device == "cpu" and p.kind != "self-moved attribute" for p in tensors):
            yield _left_when_moved(holder, tensors)


def _expected(placement: Placement, wanted: Sequence[str], device: str | None) -> str | None:
    if len(wanted) == 1:
        return wanted[0]
    return placement.owner_device or device or (wanted[0] if wanted else None)


def _elsewhere(holder: str, astray: Sequence[Placement], expected: str | None) -> Finding:
    certain = any("parameter" in p.kind or p.dtype.startswith(_FLOATING) or p.device != "cpu" for p in astray)
    return blame(
        _code(holder, astray[0]),
        astray,
        _is_elsewhere(holder, astray, expected or ""),
        name=holder,
        expected=expected,
        reasons=(_why(astray[0]),),
        fix=_mend(holder, astray),
        severity="error" if certain else "warning",
    )


def _left_when_moved(holder: str, tensors: Sequence[Placement]) -> Finding:
    return blame(
        _code(holder, tensors[0]),
        tensors,
        _will_stay(holder, tensors),
        name=holder,
        reasons=(_why(tensors[0]),),
        fix=_mend(holder, tensors),
        severity="warning",
    )


def _is_elsewhere(holder: str, tensors: Sequence[Placement], expected: str) -> Text:
    device = tensors[0].device
    if _is_the_tensor(holder, tensors):
        return say(
            "{name} is on {device}, the module that holds it is on {expected}.",
            name=holder,
            device=device,
            expected=expected,
        )
    return say_number(
        "{number} tensor in {name} is on {device}, the module that holds it is on {expected}.",
        "{number} tensors in {name} are on {device}, the module that holds it is on {expected}.",
        len(tensors),
        name=holder,
        device=device,
        expected=expected,
    )


def _will_stay(holder: str, tensors: Sequence[Placement]) -> Text:
    if _is_the_tensor(holder, tensors):
        return say("{name} is on the CPU and will stay there when the model moves.", name=holder)
    return say_number(
        "{number} tensor in {name} is on the CPU and will stay there when the model moves.",
        "{number} tensors in {name} are on the CPU and will stay there when the model moves.",
        len(tensors),
        name=holder,
    )


def _is_the_tensor(holder: str, tensors: Sequence[Placement]) -> bool:
    return len(tensors) == 1 and tensors[0].path == holder


def _code(holder: str, placement: Placement) -> str:
    attribute = holder.rpartition(".")[2].lower()
    if placement.kind.startswith("container"):
        return "SD104"
    if placement.kind == "helper parameter":
        return "SD119"
    if "cache" in attribute:
        return "SD118"
    if "hidden" in attribute:
        return "SD120"
    return "SD121" if "metric" in attribute else "SD103"


def _why(placement: Placement) -> Text:
    return _WHY[placement.kind]


_WHY = {
    "plain attribute": say("A tensor that is a plain attribute is no buffer, so `.to()` passes it by."),
    "container tensor": say("A tensor in a plain list, tuple, dict or set is not registered, so `.to()` passes it by."),
    "container parameter": say(
        "A parameter or a module in a plain container is not registered: `.to()` passes it by, and `parameters()` does "
        "not list it."
    ),
    "helper tensor": say("An object that is no module is unknown to `.to()`, and so are the tensors that it holds."),
    "helper parameter": say("A module that is held without being registered is moved by a `.to()` of its own only."),
    "self-moved attribute": say("The class has an `_apply` of its own, and that has not moved it."),
}
"""Why `.to()` passes by a tensor of each kind."""


def _mend(holder: str, tensors: Sequence[Placement]) -> str:
    attribute = holder.rpartition(".")[2]
    kind = tensors[0].kind
    if kind == "plain attribute":
        return f'self.register_buffer("{attribute}", {attribute}, persistent=False)'
    if kind == "container parameter":
        by_name = tensors[0].path[len(holder) :].startswith(('["', "['"))
        of_modules = any("." in p.path[len(holder) :] or p.path.count("[") > holder.count("[") + 1 for p in tensors)
        cls = f"{'Module' if of_modules else 'Parameter'}{'Dict' if by_name else 'List'}"
        return f"self.{attribute} = nn.{cls}({'{…}' if by_name else '[…]'})"
    if kind == "container tensor":
        return say(
            "register each tensor of self.{attribute} with self.register_buffer(name, tensor, persistent=False)",
            attribute=attribute,
        )
    if kind == "helper parameter":
        return say(
            "self.{attribute}.to(device) beside the model's, or register the module as an attribute",
            attribute=attribute,
        )
    return say(
        "register the tensors of self.{attribute} as buffers and make it from them where it is used",
        attribute=attribute,
    )
