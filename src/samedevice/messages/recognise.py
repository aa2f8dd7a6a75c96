"""Any text -> which of PyTorch's device messages stands in it, with its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from samedevice.messages.naming import operator_of
from samedevice.messages.template import Template
from samedevice.messages.templates import TEMPLATES

__all__ = ["Recognised", "recognise"]

_TYPE_NAME = re.compile(
    r"(?:torch\.)?(?P<sparse>sparse\.)?(?:(?P<module>[a-z]\w*)\.)?\w+Tensor$|(?P<backend>CUDA|CPU|XPU|MPS)\w*Type$"
)


@dataclass(frozen=True, slots=True)
class Recognised:
    """A device message, taken apart."""

    kind: str
    """The stable name of what happened, e.g. "same-device"; all versions' wordings share it."""
    values: Mapping[str, str]
    """What stands in the message's places: argument, device, method, index …"""
    places: Mapping[str, str]
    """What is where, as far as the message says: {"mat1": "cpu", "others": "cuda:0"}."""
    exception: str
    """The name of the type that PyTorch raises with it."""
    cause: str | None
    """Slug of the cause, where the message alone settles it."""
    start: int
    end: int
    """Where in the text it stands."""
    certain: bool = True
    """False where the text alone may as well speak of dtypes: it names two types, and both on one device."""

    @property
    def operator(self) -> str | None:
        """The operator named in the message, without overload: "addmm" for "wrapper_CUDA_addmm"; None where none is."""
        if "method" in self.values:
            return operator_of(self.values["method"])
        function = self.values.get("function")
        return (
            None if function is None else function.removeprefix("aten::").split(".")[-1 if "torch." in function else 0]
        )

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices named in the message, in its order, each once."""
        return tuple(dict.fromkeys(self.places.values()))


def recognise(text: str) -> Recognised | None:
    """Find one of PyTorch's device messages in a text.

    The text may hold anything around it (a whole traceback, a log line, a tracker's quotation in any language); the
    message that ends last wins, since a traceback's own exception is its last line, and of those the longest.

    Args:
        text: Where to look.

    Returns:
        The message, or None where there is none.
    """
    candidates = [template for template in TEMPLATES if template.may_stand_in(text)]
    found = [(match, template) for template in candidates for match in _last_match(template, text)]
    if not found:
        return None
    match, template = max(found, key=lambda pair: (pair[0].end(), pair[0].end() - pair[0].start()))
    values = match.groupdict()
    return Recognised(
        kind=template.kind,
        values=values,
        places=_places(template, values),
        exception=template.exception,
        cause=template.cause,
        start=match.start(),
        end=match.end(),
        certain=not _speaks_of_dtypes(values),
    )


def _last_match(template: Template, text: str) -> list[re.Match[str]]:
    matches = list(template.pattern().finditer(text))
    return matches[-1:]


def _places(template: Template, values: Mapping[str, str]) -> dict[str, str]:
    places = {operand.format(**values): _device_at(place, values) for operand, place in template.places}
    told = {place for _, place in template.places}
    for name, value in values.items():
        if name in told:
            continue
        # "input_type" and the like name a device only through a tensor's type.
        device = _device_of_type(value) if name.endswith("_type") else None
        if device is not None:
            places[values.get("argument", "weight") if name == "parameter_type" else name.removesuffix("_type")] = (
                device
            )
    return places


def _device_at(place: str, values: Mapping[str, str]) -> str:
    if place.startswith("="):
        return place.removeprefix("=")
    if place.endswith("type"):
        return _device_of_type(values[place]) or ""
    return values[place].lower() if place.endswith("backend") else values[place]


def _speaks_of_dtypes(values: Mapping[str, str]) -> bool:
    types = [value for name, value in values.items() if name.rpartition("_")[2] == "type"]
    return len(types) > 1 and len(set(map(_device_of_type, types))) == 1


def _device_of_type(name: str) -> str | None:
    """The kind of device of a legacy type name: "torch.cuda.FloatTensor" is cuda, "CPUBFloat16Type" is cpu."""
    match = _TYPE_NAME.match(name)
    if match is None:
        return None
    return (match["backend"] or match["module"] or "cpu").lower()
