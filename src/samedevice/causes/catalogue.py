"""All causes, by code and by slug. A cause's file is loaded only when it is asked for."""

from __future__ import annotations

import difflib
import functools
import importlib
from typing import cast

from samedevice.causes.cause import Cause
from samedevice.errors import UsageError

__all__ = ["SLUGS", "all_causes", "by_code", "by_slug", "find"]

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


@functools.cache
def by_slug(slug: str) -> Cause:
    """The cause called `slug`, e.g. "plain-attribute".

    Args:
        slug: a slug of `SLUGS`.

    Returns:
        The cause, from its own file; no other cause is loaded.

    Raises:
        UsageError: no cause has that slug.
    """
    if slug not in SLUGS.values():
        raise UsageError(_unknown(slug))
    module = importlib.import_module(f"samedevice.causes.{slug.replace('-', '_')}")
    return cast("Cause", module.CAUSE)


def by_code(code: str) -> Cause:
    """The cause with `code`, e.g. "SD103".

    Raises:
        UsageError: no cause has that code.
    """
    if code not in SLUGS:
        raise UsageError(_unknown(code))
    return by_slug(SLUGS[code])


def find(text: str) -> Cause:
    """The cause that a person means by `text`: a code or a slug, in any case, with `-` or `_`.

    Raises:
        UsageError: no cause is called that; the message names the nearest one.
    """
    slug = SLUGS.get(text.upper(), text.lower().replace("_", "-"))
    if slug not in SLUGS.values():
        raise UsageError(_unknown(text))
    return by_slug(slug)


def all_causes() -> tuple[Cause, ...]:
    """Every cause, in the order of the codes."""
    return tuple(by_slug(slug) for slug in SLUGS.values())


def _unknown(text: str) -> str:
    known = {name.lower(): name for name in (*SLUGS, *SLUGS.values())}
    near = [known[name] for name in difflib.get_close_matches(text.lower(), known, n=1)]
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"no cause is called {text!r}{hint} (`samedevice causes` lists them)"
