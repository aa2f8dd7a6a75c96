"""SD302: "cuda:0" written down where the device could be chosen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from samedevice.findings import Fix
from samedevice.linting import edits
from samedevice.linting.devices.method_tables import ACCELERATORS
from samedevice.linting.smells.scan import Scan, Seen, Smell
from samedevice.texts import say

_NUMBERED = re.compile(rf"({'|'.join(sorted(ACCELERATORS))}):(\d+)")


def _check(scan: Scan) -> Iterator[Seen]:
    literals = [
        (node, match)
        for node in scan.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (match := _NUMBERED.fullmatch(node.value))
    ]
    if len({match[2] for _, match in literals}) > 1:
        return  # several devices are told apart on purpose
    for node, match in literals:
        if not _is_meant_as_text(scan, node):
            kind = match[1]
            yield (
                node,
                say(
                    '"{device}" is written down; another machine or user may need another {kind} device',
                    device=match[0],
                    kind=kind,
                ),
                (
                    Fix(f'"{kind}"', (edits.replace(scan.source, node, _requoted(scan, node, kind)),), safe=False)
                    if match[2] == "0"
                    else None
                ),
            )


def _requoted(scan: Scan, node: ast.Constant, kind: str) -> str:
    written = scan.source.segment(node)
    return written.replace(str(node.value), kind)


def _is_meant_as_text(scan: Scan, node: ast.Constant) -> bool:
    """Compared, a key, a statement of its own, part of an f-string, or the default of an option that a user may set."""
    parent = scan.parents[node]
    if isinstance(parent, ast.Compare | ast.Expr | ast.JoinedStr | ast.Dict | ast.Subscript):
        return True
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "add_argument"
        for each in scan.ancestors(node)
    )


SMELL = Smell("SD302", "device-literal", _check)
