"""Report -> a Mermaid flowchart of the flow model -> inputs -> optimizer: a picture of which step failed.

The steps of the flow stand in a row. A step with faults is red and says what is in the wrong place; the arrow out of
the first such step is dotted, for what comes after it was not reached on one device.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator

from samedevice.findings import Finding, Report
from samedevice.reports.wording import ROLES
from samedevice.texts import say, shown

__all__ = ["to_mermaid"]

MOST_NAMES = 3

_STEPS = {"model": "model", "batch": "inputs", "criterion": "criterion", "optimizer": "optimizer"}
"""The steps of the flow by the role of `Placement`, in order."""
_OPTIONAL = ("criterion",)
_STEP_OF_CAUSE = {
    "SD101": "batch",
    "SD108": "batch",
    "SD109": "batch",
    "SD110": "batch",
    "SD122": "criterion",
    "SD201": "optimizer",
    "SD202": "optimizer",
    "SD203": "optimizer",
}
"""Every other cause is the model's own: what it holds, makes or was never given."""


def to_mermaid(report: Report) -> str:
    """`report` as a Mermaid flowchart.

    Args:
        report: what `check` or any other tool found.

    Returns:
        The flowchart's text, ending in a line break; it goes into a Markdown block marked `mermaid`.
    """
    faults: dict[str, list[Finding]] = {role: [] for role in _STEPS}
    for finding in report.findings:
        faults[_step_of(finding)].append(finding)
    roles = [role for role in _STEPS if role not in _OPTIONAL or faults[role] or _counts(report, role)]
    return "\n".join(["flowchart LR", *(f"    {line}" for line in _lines(report, roles, faults))]) + "\n"


def _step_of(finding: Finding) -> str:
    """The step by the culprit's name, e.g. `criterion.weight`, else by the cause."""
    root = re.match(r"\w+", finding.culprit.name) if finding.culprit else None
    if root and root[0] in _STEPS:
        return root[0]
    return _STEP_OF_CAUSE.get(finding.code, "model")


def _lines(report: Report, roles: list[str], faults: dict[str, list[Finding]]) -> Iterator[str]:
    for role in roles:
        yield f'{_STEPS[role]}["{_label(report, role, faults[role])}"]:::{_state(report, role, faults[role])}'
    broken = False
    for role, following in itertools.pairwise(roles):
        broken = broken or any(finding.severity == "error" for finding in faults[role])
        yield f"{_STEPS[role]} {'-.->' if broken else '-->'} {_STEPS[following]}"
    yield "classDef ok fill:#e6f4ea,stroke:#1b6e3c,color:#1b6e3c"
    yield "classDef warned fill:#fff4d6,stroke:#b98a00,color:#5c4500"
    yield "classDef failed fill:#fdecea,stroke:#b3261e,color:#b3261e,stroke-width:3px"
    yield "classDef unseen fill:#f6f7f9,stroke:#5b6675,color:#5b6675,stroke-dasharray:4"


def _state(report: Report, role: str, faults: list[Finding]) -> str:
    if any(finding.severity == "error" for finding in faults):
        return "failed"
    if faults:
        return "warned"
    # A report of a run has no placements: there, a step without a fault is right.
    return "ok" if not report.placements or any(p.role == role for p in report.placements) else "unseen"


def _label(report: Report, role: str, faults: list[Finding]) -> str:
    lines = [f"<b>{shown(ROLES[_STEPS[role]])}</b>"]
    for device, number in _counts(report, role).items():
        lines.append(_escape(shown(say("{number} on {device}", number=number, device=device))))
    lines += [_escape(f"{finding.code} {_blamed(finding)}") for finding in faults[:MOST_NAMES]]
    if len(faults) > MOST_NAMES:
        lines.append(shown(say("and {number} more", number=len(faults) - MOST_NAMES)))
    return "<br/>".join(lines)


def _counts(report: Report, role: str) -> Counter[str]:
    """How many tensors of a step are on each device; a parameter counts for its model and not for its optimizer."""
    return Counter(p.device for p in report.placements if p.role == role and not p.kind.endswith("held parameter"))


def _blamed(finding: Finding) -> str:
    culprit = finding.culprit
    if culprit is None:
        return finding.cause
    if culprit.device is None:
        return culprit.name
    return shown(say("{name} on {device}", name=culprit.name, device=culprit.device))


def _escape(text: str) -> str:
    """`text` for a quoted Mermaid label: what would end the label or start a tag goes in as an entity code."""
    named = {'"': "quot", "<": "lt", ">": "gt", "#": "35", "&": "amp", "`": "96"}
    return "".join(f"#{named[c]};" if c in named else c if c.isprintable() else " " for c in text)
