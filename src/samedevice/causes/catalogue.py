"""All causes, by code and by slug. A cause's file is loaded only when it is asked for."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, cast

from samedevice.errors import UsageError
from samedevice.texts import Text, say

if TYPE_CHECKING:
    from samedevice.causes.cause import Cause

__all__ = ["NAMES", "SLUGS", "SMELLS", "all_causes", "all_smells", "by_code", "by_slug", "find"]

SLUGS = {
    "SD101": "input-not-moved",
    "SD102": "model-not-moved",
    "SD103": "plain-attribute",
    "SD104": "plain-container",
    "SD105": "result-discarded",
    "SD106": "factory-default-device",
    "SD107": "hardcoded-device",
    "SD108": "nested-batch",
    "SD109": "index-device",
    "SD110": "lengths-must-be-cpu",
    "SD111": "generator-device",
    "SD112": "numpy-on-cuda",
    "SD113": "checkpoint-map-location",
    "SD114": "module-created-in-forward",
    "SD115": "split-model",
    "SD116": "dataparallel-misplaced",
    "SD117": "global-tensor",
    "SD118": "stale-cache",
    "SD119": "second-model-not-moved",
    "SD120": "hidden-state",
    "SD121": "metric-state",
    "SD122": "criterion-not-moved",
    "SD201": "optimizer-state",
    "SD202": "optimizer-stale-params",
    "SD203": "scaler-or-scheduler",
    "SD900": "other",
}
"""Code to slug. Both are stable: reports, silencing comments and settings hold them."""


SMELLS = {
    "SD301": "cuda-call",
    "SD302": "device-literal",
    "SD303": "scattered-availability",
    "SD304": "round-trip-in-loop",
    "SD305": "item-per-step",
    "SD306": "made-then-moved",
    "SD307": "blocking-copy",
    "SD901": "unused-silencing",
}
"""The same for what `lint` reports besides faults: smells, where they are selected, and idle comments."""

NAMES = {**SLUGS, **SMELLS}


@functools.cache
def by_slug(slug: str) -> Cause:
    """The cause called `slug`, e.g. "plain-attribute".

    Args:
        slug: a slug of `NAMES`.

    Returns:
        The cause, from its own file; no other cause is loaded.

    Raises:
        UsageError: no cause has that slug.
    """
    if slug not in NAMES.values():
        raise UsageError(_unknown(slug))
    folder = "causes.smells" if slug in SMELLS.values() else "causes"
    module = importlib.import_module(f"samedevice.{folder}.{slug.replace('-', '_')}")
    return cast("Cause", module.CAUSE)


def by_code(code: str) -> Cause:
    """The cause with `code`, e.g. "SD103".

    Raises:
        UsageError: no cause has that code.
    """
    if code not in NAMES:
        raise UsageError(_unknown(code))
    return by_slug(NAMES[code])


def find(text: str) -> Cause:
    """The cause that a person means by `text`: a code or a slug, in any case, with `-` or `_`.

    Raises:
        UsageError: no cause is called that; the message names the nearest one.
    """
    slug = NAMES.get(text.upper(), text.lower().replace("_", "-"))
    if slug not in NAMES.values():
        raise UsageError(_unknown(text))
    return by_slug(slug)


def all_causes() -> tuple[Cause, ...]:
    """Every cause, in the order of the codes."""
    return tuple(by_slug(slug) for slug in SLUGS.values())


def all_smells() -> tuple[Cause, ...]:
    """What `lint` reports besides faults, in the order of the codes."""
    return tuple(by_slug(slug) for slug in SMELLS.values())


def _unknown(text: str) -> Text:
    known = {name.lower(): name for name in (*NAMES, *NAMES.values())}
    import difflib

    near = [known[name] for name in difflib.get_close_matches(text.lower(), known, n=1)]
    if near:
        return say(
            "no cause is called {name!r}; did you mean {near}? (`samedevice causes` lists them)",
            name=text,
            near=near[0],
        )
    return say("no cause is called {name!r} (`samedevice causes` lists them)", name=text)
