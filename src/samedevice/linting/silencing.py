"""Comments that silence findings: `# noqa`, `# noqa: SD103`, `# samedevice: ignore[SD103]`, `…: ignore-file`.

Also which of them silence nothing. Knows findings and text, and not how either was made.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from samedevice.findings import Edit, Finding, Fix, Location
from samedevice.texts import listed, say, say_number

__all__ = ["UNUSED", "Comment", "comments_in", "silence", "unused"]

UNUSED = ("SD901", "unused-silencing")
"""The code and the name under which comments that silence nothing are reported."""

_NOQA = r"(?i)#\s*noqa\b(?::\s*(?P<codes>[A-Z][A-Z0-9]*(?:[,\s]+[A-Z]+[0-9]+)*))?"
_IGNORE = r"(?i)#\s*samedevice:\s*ignore(?P<file>-file)?(?:\[(?P<codes>[^\]]*)\])?"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that silences findings of its line, or of its whole file."""

    line: int
    column: int
    """Where `text` begins in the line, from 0."""
    text: str
    """The part that silences, such as "# noqa: SD103, E501"."""
    codes: tuple[str, ...]
    """Codes, beginnings of codes and names in lower case; empty: everything."""
    own: bool
    """Written for this tool and no other."""
    whole_file: bool = False

    def silences(self, finding: Finding) -> bool:
        """Whether `finding` is one of those that the comment speaks of."""
        at = finding.location
        if not self.whole_file and (at is None or not at.line <= self.line <= (at.end_line or at.line)):
            return False
        return not self.codes or any(_names(wanted, finding.code, finding.cause) for wanted in self.codes)


def _names(wanted: str, code: str, slug: str) -> bool:
    return wanted == slug or code.lower().startswith(wanted)


def comments_in(text: str) -> tuple[Comment, ...]:
    """The silencing comments of a file, in order. Text that looks like one inside a string silences nothing.

    Args:
        text: the source.
    """
    lowered = text.lower()
    if "noqa" not in lowered and "samedevice:" not in lowered:
        return ()
    import tokenize

    found: list[Comment] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found += _comments(token.string, *token.start)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return tuple(found)
    return tuple(found)


def _comments(text: str, line: int, column: int) -> Iterator[Comment]:
    for pattern, own in ((_NOQA, False), (_IGNORE, True)):
        for match in re.finditer(pattern, text):
            codes = tuple(part for part in re.split(r"[,\s]+", (match["codes"] or "").lower()) if part)
            whole_file = own and match["file"] is not None
            yield Comment(line, column + match.start(), match[0], codes, own, whole_file)


def silence(findings: Iterable[Finding], comments: Sequence[Comment]) -> tuple[Finding, ...]:
    """The findings that no comment speaks of."""
    return tuple(each for each in findings if not any(comment.silences(each) for comment in comments))


def unused(
    comments: Iterable[Comment],
    findings: Collection[Finding],
    file: str,
    lines: Sequence[str],
    *,
    looked_for: Collection[str],
    known: Collection[str],
) -> Iterator[Finding]:
    """A finding for each comment that names codes of which its line has none, or names that no cause has.

    Args:
        comments: those of the file.
        findings: what was found, silenced or not.
        file: the file's name.
        lines: the file's lines, without their ends.
        looked_for: codes and names that were looked for, in lower case; of others nobody knows whether they are needed.
        known: all codes and names that there are.

    Yields:
        Findings with an edit that takes away the code, or the comment where no code is left. A bare `# noqa` may be
        meant for another tool, and is left alone.
    """
    for comment in comments:
        if comment.codes:
            idle = [code for code in comment.codes if _is_idle(code, comment, findings, looked_for, known)]
        elif comment.own and set(known) <= set(looked_for) and not any(map(comment.silences, findings)):
            idle = []
        else:
            continue
        if (idle or not comment.codes) and comment.line <= len(lines):
            yield _unused(comment, idle, file, lines[comment.line - 1])


def _is_idle(
    wanted: str, comment: Comment, findings: Iterable[Finding], looked_for: Collection[str], known: Collection[str]
) -> bool:
    def among(names: Collection[str]) -> bool:
        return wanted in names or (wanted.startswith("sd") and any(name.startswith(wanted) for name in names))

    if wanted in (UNUSED[0].lower(), UNUSED[1]):
        return False
    if not among(looked_for):
        return comment.own and not among(known)
    return not any(comment.silences(each) and _names(wanted, each.code, each.cause) for each in findings)


def _unused(comment: Comment, idle: Sequence[str], file: str, line: str) -> Finding:
    what = listed([f"`{_as_written(code, comment)}`" for code in idle] or [f"`{comment.text}`"])
    end = comment.column + len(comment.text)
    new = _without(line, comment, idle)
    return Finding(
        *UNUSED,
        say_number("{names} silences nothing here", "{names} silence nothing here", max(len(idle), 1), names=what),
        Location(
            file,
            comment.line,
            None,
            comment.column + 1,
            comment.line,
            end + 1,
            line.strip(),
            source_column=_indent(line),
        ),
        severity="warning",
        fix=Fix(say("without {names}", names=what), (Edit(file, comment.line, comment.line, line, new),)),
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip()) + 1


def _as_written(code: str, comment: Comment) -> str:
    at = comment.text.lower().find(code)
    return comment.text[at : at + len(code)]


def _without(line: str, comment: Comment, idle: Sequence[str]) -> str:
    """The line with the codes taken out of the comment, or with the comment taken out where none is left."""
    before, after = line[: comment.column], line[comment.column + len(comment.text) :]
    left = [_as_written(code, comment) for code in comment.codes if code not in idle]
    if left:
        start, end = _around_codes(comment)
        return f"{before}{start}{', '.join(left)}{end}{after}"
    rest = after.strip()
    if rest and not rest.startswith("#"):
        rest = f"# {rest}"
    return f"{before.rstrip()}  {rest}" if rest and before.strip() else before + rest if rest else before.rstrip()


def _around_codes(comment: Comment) -> tuple[str, str]:
    """What stands before and after the codes of a comment."""
    first = min(comment.text.lower().find(code) for code in comment.codes)
    return comment.text[:first], "]" if comment.text.endswith("]") else ""
