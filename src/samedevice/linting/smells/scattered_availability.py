"""SD303: `torch.cuda.is_available()`, or one of its kin, asked again where the device was already chosen."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.linting import lines
from samedevice.linting.devices.method_tables import ACCELERATORS
from samedevice.linting.smells.scan import Scan, Seen, Smell
from samedevice.texts import say

_ASKED = frozenset(f"torch.{name}.is_available" for name in (*ACCELERATORS, "accelerator", "backends.mps"))


def _check(scan: Scan) -> Iterator[Seen]:
    first: dict[str, ast.Call] = {}
    for call in scan.calls():
        name = scan.qualified(call.func)
        if name not in _ASKED or _skips_a_test(scan, call):
            continue
        if name in first:
            line = lines.line(first[name].lineno)
            message = say("`{name}()` is asked again, after {line}; choose the device once", name=name, line=line)
            yield call, message, None
        first.setdefault(name, call)


def _skips_a_test(scan: Scan, call: ast.Call) -> bool:
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and "skip" in each.func.attr.lower()
        for each in scan.ancestors(call)
    )


SMELL = Smell("SD303", "scattered-availability", _check)
