"""Comments that silence findings on their line: `# noqa`, `# noqa: SD103`, `# samedevice: ignore[SD103]`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Mapping

__all__ = ["silenced", "silencing_comments"]

_NOQA = re.compile(r"#\s*noqa\b(?::\s*(?P<codes>[A-Z][A-Z0-9]*(?:[,\s]+[A-Z][A-Z0-9]*)*))?", re.IGNORECASE)
_IGNORE = re.compile(r"#\s*samedevice:\s*ignore(?:\[(?P<codes>[^\]]*)\])?", re.IGNORECASE)

_EVERYTHING = frozenset({"*"})


def silencing_comments(text: str) -> dict[int, frozenset[str]]:
    """The lines with such a comment, and what each silences: codes or slugs in lower case, or "*" for everything.

    Args:
        text: the source.

    Returns:
        By line, counted from 1. Text that looks like a comment inside a string silences nothing.
    """
    lowered = text.lower()
    if "noqa" not in lowered and "samedevice:" not in lowered:
        return {}
    found: dict[int, frozenset[str]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (codes := _codes(token.string)) is not None:
                found[token.start[0]] = found.get(token.start[0], frozenset()) | codes
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return found
    return found


def _codes(comment: str) -> frozenset[str] | None:
    for pattern in (_NOQA, _IGNORE):
        match = pattern.search(comment)
        if match is not None:
            codes = match["codes"]
            return frozenset(re.split(r"[,\s]+", codes.strip().lower())) - {""} if codes else _EVERYTHING
    return None


def silenced(comments: Mapping[int, frozenset[str]], lines: range, code: str, slug: str) -> bool:
    """Whether a finding that spans `lines` is silenced by a comment on one of them."""
    return any(
        wanted == "*" or wanted == slug or code.lower().startswith(wanted)
        for line in lines
        for wanted in comments.get(line, ())
    )
