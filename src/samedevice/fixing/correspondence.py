"""Which line of a text is which line of the text after an edit, and so: is a fault the one of before, where is it now.

Compares texts and findings only; runs and edits nothing.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import replace

from samedevice.findings import Edit, Finding, Fix
from samedevice.fixing.project import Project

__all__ = ["any_gone", "as_on_disk", "corresponding"]


def corresponding(before: str, after: str, line: int) -> range:
    """The lines of `after` that stand where `line` of `before` stood; both count from 1.

    Args:
        before: a text.
        after: the same after edits.
        line: in `before`.

    Returns:
        One line where it is unchanged, those that replaced it and its neighbours, or none where it went away.
    """
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for kind, first, last, new_first, new_last in matcher.get_opcodes():
        if first <= line - 1 < last:
            if kind == "equal" or last - first == new_last - new_first:
                new_first += line - 1 - first
                new_last = new_first + 1
            return range(new_first + 1, new_last + 1)
    return range(0)


def any_gone(before: Iterable[Finding], first: Project, after: Iterable[Finding], second: Project) -> bool:
    """Whether one of the faults that a run found is not found any more.

    Args:
        before: the findings of a run of `first`.
        first: the files then.
        after: the findings of a run of `second`.
        second: the same files with another edit.
    """
    now = list(after)
    return any(not any(_is_same(old, first, new, second) for new in now) for old in before)


def _is_same(old: Finding, first: Project, new: Finding, second: Project) -> bool:
    """The same cause, error, operation and tensor, at the corresponding line: how the line reads does not count."""
    return _kind(old) == _kind(new) and _is_there(old, first, new, second)


def _kind(finding: Finding) -> tuple[object, ...]:
    raised, culprit = finding.raised, finding.culprit
    error = (raised.type, raised.message.partition("\n")[0]) if raised else finding.message
    return finding.cause, error, finding.operation, culprit.name if culprit else None


def _is_there(old: Finding, first: Project, new: Finding, second: Project) -> bool:
    was, now = old.location, new.location
    if was is None or now is None:
        return was is now
    file = os.path.realpath(was.file)
    if file != os.path.realpath(now.file):
        return False
    (_, text), (_, edited) = first.both(file), second.both(file)
    if text == edited:
        return was.line == now.line
    lines = corresponding(text, edited, was.line)
    # A statement that was moved is known by its text.
    return now.line in lines or (not lines and was.source == now.source)


def as_on_disk(finding: Finding, project: Project) -> Finding:
    """A finding of a run of edited files that were not written, with lines and their texts as they are on disk.

    Args:
        finding: what the run found.
        project: the files that it ran.
    """
    location, culprit, fix = finding.location, finding.culprit, finding.fix
    if location is not None:
        line, source = _on_disk(location.file, location.line, location.source, project)
        location = replace(location, line=line, source=source)
    if culprit is not None and culprit.file is not None and culprit.line is not None:
        line, source = _on_disk(culprit.file, culprit.line, culprit.source, project)
        culprit = replace(culprit, line=line, source=source)
    if fix is not None:
        fix = _fix_on_disk(fix, project)
    return replace(finding, location=location, culprit=culprit, fix=fix)


def _on_disk(file: str, line: int, source: str | None, project: Project) -> tuple[int, str | None]:
    before, after = project.both(file)
    if before == after:
        return line, source
    lines = corresponding(after, before, line)
    place = lines.start if lines else min(line, len(before.splitlines()))
    return place, before.splitlines()[place - 1].strip()


def _fix_on_disk(fix: Fix, project: Project) -> Fix:
    """Only the summary stays where the edits are for lines that are not on disk."""
    edits = [_edit_on_disk(edit, project) for edit in fix.edits]
    return replace(fix, edits=tuple(edit for edit in edits if edit is not None) if all(edits) else ())


def _edit_on_disk(edit: Edit, project: Project) -> Edit | None:
    before, after = project.both(edit.file)
    if before == after:
        return edit
    lines = corresponding(after, before, edit.line)
    last = lines.start + edit.end_line - edit.line
    if not lines or "\n".join(before.splitlines()[lines.start - 1 : last]) != edit.old:
        return None
    return replace(edit, line=lines.start, end_line=last)
