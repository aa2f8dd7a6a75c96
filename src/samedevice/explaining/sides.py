"""Which side of a mix of devices is the wrong one.

Evidence, strongest first: what the operation demands (lengths on the CPU), an accelerator against the CPU, where the
parameters live, what was put there by a fixed name, a cache or a checkpoint, and last what most operands say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from samedevice.explaining.live import is_parameter
from samedevice.explaining.operands import Seen
from samedevice.messages import Recognised
from samedevice.texts import say, say_number

__all__ = ["ON_THE_CPU_ONLY", "Side", "choose_side"]

ON_THE_CPU_ONLY = say("this operation takes it on the CPU only")
_CPU_DEMANDED = ("lengths", "numpy", "tensor-split", "cpu-only-method", "pin-memory", "rng-state")


@dataclass(frozen=True, slots=True)
class Side:
    """The operands in the wrong place and where they should be."""

    wrong: tuple[Seen, ...]
    expected: str
    reason: str


def choose_side(seen: Sequence[Seen], recognised: Recognised | None, suspicion: Callable[[Seen], float]) -> Side | None:
    """Split the operands of a failed operation into right and wrong.

    Args:
        seen: the operands, in the operation's order.
        recognised: the message, taken apart.
        suspicion: how likely an operand is the wrong one, from how it came to where it is; asked between accelerators.

    Returns:
        None where the operands are not on different devices and the message demands nothing.
    """
    if recognised is not None and recognised.kind in _CPU_DEMANDED:
        away = [one for one in seen if one.device and one.device != "cpu"]
        wrong = tuple(one for one in away if one.argument in recognised.places) or tuple(away[-1:])
        return Side(wrong, "cpu", ON_THE_CPU_ONLY) if wrong else None
    present = [one for one in seen if one.device and one.device != "meta"]
    devices = list(dict.fromkeys(one.device for one in present))
    if len(devices) < 2:
        return _as_told(present, recognised)
    accelerators = [device for device in devices if device != "cpu"]
    if len(accelerators) < len(devices):
        return _against_cpu(present, accelerators)
    return _between_accelerators(present, devices, suspicion)


def _as_told(present: list[Seen], recognised: Recognised | None) -> Side | None:
    """Where only the wrong operand is an expression of the line: the message names the device that was expected."""
    if recognised is None or recognised.kind != "invalid-gradient" or not present:
        return None
    expected, given = recognised.places.get("input", ""), recognised.places.get("grad", "")
    wrong = tuple(one for one in present if one.device == given)
    return (
        Side(wrong, expected, say("the gradient is for a tensor on {expected}", expected=expected))
        if wrong and expected
        else None
    )


def _against_cpu(present: list[Seen], accelerators: list[str]) -> Side:
    expected = _most_common([one for one in present if one.device in accelerators]) or accelerators[0]
    others = [one for one in present if one.device == expected]
    wrong = [one for one in present if one.device == "cpu"]
    # A CPU scalar may join; where one did not, the operands with sizes are the ones left behind.
    wrong = [one for one in wrong if one.shape] or wrong
    reason: str = say_number(
        "{number} of {all} operands is on {expected}",
        "{number} of {all} operands are on {expected}",
        len(others),
        all=len(present),
        expected=expected,
    )
    if any(map(_is_parameter, others)):
        reason = say("the parameters are on {expected}", expected=expected)
    elif len(present) == 2:
        reason = say("the other operand is on {expected}", expected=expected)
    return Side(tuple(wrong), expected, reason)


def _between_accelerators(present: list[Seen], devices: list[str], suspicion: Callable[[Seen], float]) -> Side:
    def score(device: str) -> tuple[float, int, int]:
        members = [one for one in present if one.device == device]
        # Among equals the later operand is wrong: the first set the operation's device.
        return max(map(suspicion, members)), -len(members), devices.index(device)

    wrong = max(devices, key=score)
    expected = _most_common([one for one in present if one.device != wrong]) or devices[0]
    reason = say("the other operands are on {expected}", expected=expected)
    return Side(tuple(one for one in present if one.device == wrong), expected, reason)


def _most_common(members: Sequence[Seen]) -> str | None:
    counted = Counter(one.device for one in members)
    return counted.most_common(1)[0][0] if counted else None


def _is_parameter(one: Seen) -> bool:
    return is_parameter(one.tensor)
