"""All that is known about one fault before a cause is claimed, and the claim itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from samedevice.explaining.flow import Suspect
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import devices_of_parameters, is_tensor, same_storage
from samedevice.explaining.made import Made, Origins
from samedevice.explaining.operands import Seen
from samedevice.explaining.operations import operation_of
from samedevice.explaining.routes import Route, Step, modules_named, search_all
from samedevice.explaining.sides import Side
from samedevice.faults import Fault
from samedevice.messages import Recognised

__all__ = ["Evidence", "Verdict", "spanning_model"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A cause, why it is that one, and what the judge knows better than the walk back did."""

    slug: str
    reason: str
    name: str | None = None
    """A better name for what is in the wrong place, e.g. the container of several."""
    made: Made | None = None
    """A better line for where it was left behind."""


@dataclass
class Evidence:
    """One fault: read once, judged by many."""

    error: BaseException
    frames: list[UserFrame]
    fault: Fault | None = None
    recognised: Recognised | None = None
    seen: Sequence[Seen] = ()
    side: Side | None = None
    suspect: Suspect | None = None
    made: Made | None = None
    root: Made | None = None
    """Where the data that the wrong tensor was computed from came from."""
    discarded: Made | None = None
    origins: Origins | None = None
    _elsewhere: list[Route] | None = field(default=None, repr=False)
    _models: list[Route] | None = field(default=None, repr=False)

    @property
    def kind(self) -> str:
        """The message's stable name; "" where it is not a known one."""
        return self.recognised.kind if self.recognised is not None else ""

    @property
    def frame(self) -> UserFrame | None:
        """The innermost frame of the user's own code."""
        return self.frames[-1] if self.frames else None

    @property
    def operation(self) -> str:
        """The base name of the failed operator, e.g. "add", without in-place underscore; "" where unknown."""
        name = (
            self.fault.operation
            if self.fault is not None
            else operation_of(self.recognised, self.frame, self.error) or ""
        )
        return name.rpartition("::")[2].partition(".")[0].strip("_") if "torch." not in name else name

    @property
    def expected(self) -> str:
        """Where the wrong side should have been; "" where unknown."""
        return self.side.expected if self.side is not None else ""

    @property
    def device(self) -> str:
        """Where the wrong side is."""
        return self.suspect.device if self.suspect is not None else ""

    @property
    def value(self) -> Any:
        """What is in the wrong place: a tensor, a module, or None."""
        return self.suspect.value if self.suspect is not None else None

    def frames_of(self, made: Made) -> list[UserFrame]:
        """The running frames of the function that the line `made` is in, innermost first."""
        place = (made.file, made.function)
        return [frame for frame in reversed(self.frames) if (frame.file, frame.function) == place]

    def steps(self) -> tuple[Step, ...]:
        """The look-ups from the variable to the wrong thing."""
        route = self.suspect.route if self.suspect is not None else None
        return route.steps if route is not None else ()

    def home(self) -> Step | None:
        """The last look-up that is no item of a container: which object's attribute holds it, at whatever depth."""
        return next((step for step in reversed(self.steps()) if step.kind != "item"), None)

    def homes_elsewhere(self) -> list[Route]:
        """Where else the wrong tensor lives longer than the failing call: attributes, containers, globals."""
        if self._elsewhere is None:
            self._elsewhere = self._search_homes()
        return self._elsewhere

    def models(self) -> list[Route]:
        """The modules that the user's variables name, outermost objects only, innermost frame first."""
        if self._models is None:
            self._models = modules_named(reversed(self.frames))
        return self._models

    def called(self, pattern: str) -> bool:
        """Whether the wrong thing, or anything on the way to it, is called like `pattern`."""
        if self.suspect is None:
            return False
        names = [self.suspect.name, *(text for _, text in self.suspect.aliases)]
        return any(re.search(pattern, name, re.IGNORECASE) for name in names)

    def _search_homes(self) -> list[Route]:
        tensor = self.value
        if not is_tensor(tensor):
            return []
        routes = search_all(reversed(self.frames), lambda value: is_tensor(value) and same_storage(value, tensor))
        return [route for route in routes if route.steps or route.scope in ("global", "closure")]


def spanning_model(evidence: Evidence) -> Route | None:
    """A model of the user's with parameters on both of the devices that met."""
    for route in evidence.models():
        if {evidence.device, evidence.expected} <= devices_of_parameters(route.value):
            return route
    return None
