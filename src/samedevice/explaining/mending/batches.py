"""Moves a list of tensors or of dicts as a whole: the first that failed is one of many that would fail after it."""

from __future__ import annotations

from typing import Any

from samedevice.explaining.diagnosing.evidence import Evidence
from samedevice.explaining.live import device_of, is_tensor
from samedevice.explaining.mending.devices_in_scope import device_in_frame
from samedevice.explaining.mending.edits import as_fix, insert_before
from samedevice.explaining.routes import Route
from samedevice.explaining.words import words_of
from samedevice.findings import Fix

__all__ = ["moved_whole"]

_STAYS = frozenset({"len", "lens", "length", "lengths", "size", "sizes", "name", "names", "path", "paths", "id", "ids"})
"""Words of what often has to stay on the CPU, or may not be moved for another reason."""


def moved_whole(evidence: Evidence) -> Fix | None:
    """`targets = [{k: v.to(device) for k, v in t.items()} for t in targets]`, before the line that hands them on.

    Args:
        evidence: what was read; its suspect is an entry of a list in a local variable.

    Returns:
        None where the variable holds something else, or other entries of it are where they should be.
    """
    suspect = evidence.suspect
    route = suspect.route if suspect is not None else None
    if suspect is None or route is None or suspect.frame.statement is None or route.scope in ("closure", "global"):
        return None
    text = _moved(route, evidence.device)
    device = device_in_frame(suspect.frame, evidence.expected, suspect.frame.line)
    if text is None or device is None:
        return None
    return as_fix(insert_before(suspect.frame.source, suspect.frame.statement, text.format(device=device)))


def _moved(route: Route, device: str) -> str | None:
    """The statement that moves all that the variable holds, with the place of the device left open."""
    owners = [step.owner for step in route.steps]
    rows = owners[0] if owners and type(owners[0]) is list else None
    if rows is None or any(step.kind != "item" for step in route.steps):
        return None
    name, letter = route.base, "t" if route.base != "t" else "each"
    if len(owners) == 1 and _all_on(rows, device):
        return f"{name} = [{letter}.to({{device}}) for {letter} in {name}]"
    if len(owners) == 2 and all(type(row) is dict and _all_on(list(row.values()), device) for row in rows):
        if any(type(key) is str and _STAYS & set(words_of(key)) for row in rows for key in row):
            return None
        return f"{name} = [{{{{k: v.to({{device}}) for k, v in {letter}.items()}}}} for {letter} in {name}]"
    return None


def _all_on(values: list[Any], device: str) -> bool:
    return bool(values) and all(is_tensor(value) and device_of(value) == device for value in values)
