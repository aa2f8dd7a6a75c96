"""The small phrases that several renderers share, so that text and HTML say the same thing in the same words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from samedevice.findings import Culprit, Finding, Fix, Location, Operand, Report
from samedevice.texts import Text, say, say_number, shown

__all__ = [
    "changed_lines",
    "culprit_place",
    "edits_by_file",
    "headline",
    "mend",
    "place",
    "placement_lines",
    "printable",
    "readable",
    "tensor",
]

MOST_DEVICES = 8

_KINDS: dict[str, Callable[[int], Text]] = {
    "parameter": lambda n: say_number("{number} parameter", "{number} parameters", n),
    "held parameter": lambda n: say_number("{number} held parameter", "{number} held parameters", n),
    "stale parameter": lambda n: say_number("{number} stale parameter", "{number} stale parameters", n),
    "unheld parameter": lambda n: say_number("{number} unheld parameter", "{number} unheld parameters", n),
    "container parameter": lambda n: say_number("{number} container parameter", "{number} container parameters", n),
    "helper parameter": lambda n: say_number("{number} helper parameter", "{number} helper parameters", n),
    "buffer": lambda n: say_number("{number} buffer", "{number} buffers", n),
    "plain attribute": lambda n: say_number("{number} plain attribute", "{number} plain attributes", n),
    "self-moved attribute": lambda n: say_number("{number} self-moved attribute", "{number} self-moved attributes", n),
    "attribute": lambda n: say_number("{number} attribute", "{number} attributes", n),
    "container tensor": lambda n: say_number("{number} container tensor", "{number} container tensors", n),
    "helper tensor": lambda n: say_number("{number} helper tensor", "{number} helper tensors", n),
    "group tensor": lambda n: say_number("{number} group tensor", "{number} group tensors", n),
    "gradient": lambda n: say_number("{number} gradient", "{number} gradients", n),
    "input": lambda n: say_number("{number} input", "{number} inputs", n),
    "length": lambda n: say_number("{number} length", "{number} lengths", n),
    "argument": lambda n: say_number("{number} argument", "{number} arguments", n),
    # "state" has no plural in English: one entry of optimizer state is a state, and so are twenty.
    "state": lambda n: say_number("{number} state", "{number} state", n),
    "host state": lambda n: say_number("{number} host state", "{number} host state", n),
    "free state": lambda n: say_number("{number} free state", "{number} free state", n),
    "": lambda n: say_number("{number} tensor", "{number} tensors", n),
}
"""How many of what, by the kind of `Placement`."""
ROLES = {
    "model": say("model"),
    "criterion": say("criterion"),
    "batch": say("batch"),
    "inputs": say("inputs"),
    "optimizer": say("optimizer"),
}
"""The roles of `Placement`, and what a step of the flow is called."""


def headline(report: Report) -> str:
    """One line on the whole report."""
    script = printable(report.script or "")
    devices = _devices(report.simulated or ())
    if not report.findings and report.errors:
        number = len(report.errors)
        return shown(
            say_number(
                "{number} file could not be read; no device fault in the others",
                "{number} files could not be read; no device fault in the others",
                number,
            )
        )
    if not report.findings and report.outcome == "error":
        return _failed(script, devices)
    what = _counted(report.findings)
    if script and devices:
        return shown(say("{what} in {script} on simulated {devices}", what=what, script=script, devices=devices))
    if script:
        return shown(say("{what} in {script}", what=what, script=script))
    return shown(say("{what} on simulated {devices}", what=what, devices=devices) if devices else what)


def _counted(findings: Sequence[Finding]) -> Text:
    """How many faults, and apart from them what is no fault: smells, comments that silence nothing."""
    notes = sum(finding.code.startswith(_NO_FAULTS) for finding in findings)
    number = len(findings) - notes
    faults = say_number("{number} device fault", "{number} device faults", number) if number else _NOTHING
    if not notes:
        return faults
    other = say_number("{number} other note", "{number} other notes", notes)
    return say("{faults}, {notes}", faults=faults, notes=other)


_NO_FAULTS = ("SD3", "SD901")
_NOTHING = say("No device fault found")


def _failed(script: str, devices: str) -> str:
    name = script or say("The script")
    if devices:
        return shown(
            say(
                "{script} failed for a reason of its own; no device fault was found on simulated {devices}",
                script=name,
                devices=devices,
            )
        )
    return shown(say("{script} failed for a reason of its own; no device fault was found", script=name))


def _devices(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= MOST_DEVICES else f"{names[0]} … {names[-1]}"


def place(location: Location) -> str:
    """E.g. "train.py:31 in forward"."""
    at: str = f"{location.file}:{location.line}"
    if location.cell is not None:
        at = say("{place} (cell {cell})", place=at, cell=location.cell)
    if location.function:
        at = say("{place} in {function}", place=at, function=location.function)
    return readable(at)


def culprit_place(culprit: Culprit) -> str:
    """E.g. "train.py:12", or nothing where the line is not known."""
    return printable(f"{culprit.file}:{culprit.line}") if culprit.file and culprit.line else ""


def tensor(of: Culprit | Operand) -> str:
    """E.g. "cpu, float32[1, 512, 64]": what is known about a tensor, without its name."""
    dtype = (of.dtype or "").removeprefix("torch.")
    shape = "" if of.shape is None else f"[{', '.join(map(str, of.shape))}]"
    return ", ".join(part for part in (of.device or "", dtype + shape) if part)


def placement_lines(report: Report) -> list[str]:
    """What lives where, a line for each role and kind, e.g. "model: 12 parameters on cuda:0"."""
    counts = Counter((p.role, p.kind, p.device) for p in report.placements)
    return [
        shown(say("{role}: {things} on {device}", role=ROLES.get(role, role), things=_things(kind, n), device=device))
        for (role, kind, device), n in counts.items()
    ]


def _things(kind: str, number: int) -> Text:
    if kind in _KINDS:
        return _KINDS[kind](number)
    return say("{number} of kind {kind}", number=number, kind=kind)


def readable(text: str) -> str:
    """`text` in the reader's language, printable."""
    return printable(shown(text))


def printable(text: str) -> str:
    """`text` with control characters shown, not sent: a source line must not steer the reader's terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text.expandtabs(4))


def mend(fix: Fix) -> str:
    """What a fix does, with a warning where it may change more than it should."""
    if fix.safe:
        return fix.summary
    return say("{mend} (look twice: it may change more than the device)", mend=fix.summary)


def edits_by_file(finding: Finding) -> dict[str, list[tuple[int, str, str]]]:
    """The edits of `finding` as (line, old, new) under each file, from the top of the file down."""
    files: dict[str, list[tuple[int, str, str]]] = {}
    for edit in sorted(finding.fix.edits if finding.fix else (), key=lambda edit: (edit.file, edit.line)):
        files.setdefault(edit.file, []).append((edit.line, edit.old, edit.new))
    return files


def changed_lines(old: str, new: str) -> Iterator[tuple[str, str]]:
    """The lines of an edit, each with what becomes of it: "-" goes, "+" comes, " " stays."""
    before, after = old.splitlines(), new.splitlines()
    from difflib import SequenceMatcher

    for tag, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        yield from ((" " if tag == "equal" else "-", line) for line in before[start:end])
        if tag != "equal":
            yield from (("+", line) for line in after[new_start:new_end])
