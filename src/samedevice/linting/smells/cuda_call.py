"""SD301: `.cuda()`, or one of its kin, in a function or method, where the caller knows the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.method_tables import MOVES
from samedevice.linting.smells.scan import Scan, Seen, Smell
from samedevice.texts import say


def _check(scan: Scan) -> Iterator[Seen]:
    for call in scan.calls():
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in MOVES:
            continue
        function = scan.function_of(call)
        if function is not None and not scan.is_main(call):
            name = wording.text_of(call.func.value, scan.source)
            message = say(
                "`{name}.{method}()` in `{function}` ties its callers to {kind}",
                name=name,
                method=call.func.attr,
                function=function.name,
                kind=call.func.attr.upper(),
            )
            yield call, message, _fix(scan, call, call.func)


def _fix(scan: Scan, call: ast.Call, function: ast.Attribute) -> Fix | None:
    """`.to(device)` where the function is given a device."""
    device = scan.device_name(call)
    if device is None:
        return None
    kept = [scan.source.segment(each) for each in call.keywords if each.arg not in (None, "device")]
    text = f"{scan.source.segment(function.value)}.to({', '.join([device, *kept])})"
    return Fix(f".to({device})", (edits.replace(scan.source, call, text),), safe=False)


SMELL = Smell("SD301", "cuda-call", _check)
