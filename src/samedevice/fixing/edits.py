"""Edits applied to text, and the text written to its file. Knows nothing of why an edit is made."""

from __future__ import annotations

import ast
import contextlib
import difflib
import io
import json
import os
import re
import tempfile
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from samedevice.errors import UsageError
from samedevice.findings import Edit
from samedevice.texts import say

__all__ = ["Change", "apply_edits", "encoding_of", "write", "write_all"]


@dataclass(frozen=True, slots=True)
class Change:
    """A file and its text before and after."""

    file: str
    before: str
    after: str
    encoding: str | None = None
    """Where the text is in no file, or it is known; else it is looked up in the file."""

    @property
    def data(self) -> bytes:
        """The bytes of the text after, in the encoding of the file."""
        return self.after.encode(self.encoding or encoding_of(Path(self.file)))

    @property
    def patch(self) -> bytes:
        """The change as a patch for `git apply` and `patch -p1`, in the encoding of the file, which is still there.

        Source: git's apply.c, which ends a name that holds a space at a tab, and reads lines up to a line feed only.
        """
        encoding = self.encoding or encoding_of(Path(self.file))
        # Bytes as text with one character each, so that one function serves both.
        before, after = (text.encode(encoding).decode("latin-1") for text in (self.before, self.after))
        name = os.fsencode(_from_here(Path(self.file)).as_posix()).decode("latin-1")
        lines = _unified(name, *(re.findall(r"[^\n]*\n|[^\n]+$", text) for text in (before, after)))
        return "".join(lines).encode("latin-1")

    @property
    def diff(self) -> str:
        """The same as text, for a person."""
        return "".join(_unified(Path(self.file).as_posix(), _lines(self.before), _lines(self.after)))


def _from_here(path: Path) -> Path:
    """Relative to the current folder where it is below that: so a patch names files."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _unified(name: str, before: list[str], after: list[str]) -> Iterator[str]:
    end = "\t" if " " in name else ""
    for line in difflib.unified_diff(before, after, f"a/{name.lstrip('/')}{end}", f"b/{name.lstrip('/')}{end}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Lines with their ends, split where Python splits them."""
    return io.StringIO(text, newline="").readlines()


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """`text` after `edits`.

    Args:
        text: the text of the file that they are for; its line ends are kept.
        edits: in any order. One that overlaps an earlier one, or whose `old` is not what stands there, is left out.

    Returns:
        The new text; the same one where nothing applied.
    """
    lines = _lines(text)
    taken: set[int] = set()
    fitting: list[Edit] = []
    for edit in edits:
        span = range(edit.line, edit.end_line + 1)
        if taken.isdisjoint(span) and _old(lines, edit) == edit.old:
            taken.update(span)
            fitting.append(edit)
    for edit in sorted(fitting, key=lambda each: each.line, reverse=True):
        replaced = lines[edit.line - 1 : edit.end_line]
        lines[edit.line - 1 : edit.end_line] = _with_ends(edit.new, replaced)
    return "".join(lines)


def _old(lines: Sequence[str], edit: Edit) -> str:
    return "\n".join(line.rstrip("\r\n") for line in lines[edit.line - 1 : edit.end_line])


def _with_ends(new: str, replaced: Sequence[str]) -> list[str]:
    """The new lines with the line ends of those that they replace."""
    if not new:
        return []
    ends = [line[len(line.rstrip("\r\n")) :] for line in replaced]
    usual = ends[0] or "\n"
    texts = new.split("\n")
    return [line + usual for line in texts[:-1]] + [texts[-1] + ends[-1]]


def encoding_of(path: Path) -> str:
    """The encoding of a source file, as Python reads it; "utf-8-sig" where it begins with a byte order mark."""
    return tokenize.detect_encoding(io.BytesIO(path.read_bytes()).readline)[0]


def write_all(changes: Sequence[Change]) -> None:
    """Write several files: all are prepared beside their places before the first is put there.

    Args:
        changes: files as they were read, and what they are to hold.

    Raises:
        UsageError: as `write`, or a file is not as it was read any more; then none was changed.
    """
    with contextlib.ExitStack() as stack:
        ready = [stack.enter_context(_prepared(Path(change.file), change.after)) for change in changes]
        for change in changes:
            path = Path(change.file)
            if path.read_bytes() != change.before.encode(encoding_of(path)):
                raise UsageError(
                    say("{file} was changed by somebody else meanwhile; nothing was written", file=str(path))
                )
        for temporary, real in ready:
            temporary.replace(real)


def write(path: Path, text: str) -> None:
    """Replace a source file's text at once: whoever reads it finds the old text or the new one, whole.

    Args:
        path: an existing file; its encoding, byte order mark and permissions are kept. A link stays one.
        text: what it is to hold; its line ends are written as they are.

    Raises:
        UsageError: the text is no Python, or cannot be written in the file's encoding.
    """
    with _prepared(path, text) as (temporary, real):
        temporary.replace(real)


def _no_longer_read(path: Path, error: Exception) -> str:
    if path.suffix == ".ipynb":
        return say(
            "{file}: the edited text would not be a notebook ({error}); nothing was written",
            file=str(path),
            error=str(error),
        )
    return say(
        "{file}: the edited text would not be Python ({error}); nothing was written", file=str(path), error=str(error)
    )


@contextlib.contextmanager
def _prepared(path: Path, text: str) -> Iterator[tuple[Path, Path]]:
    """A complete file beside `path` and the real path that it is for; gone afterwards unless it was put there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            (json.loads if path.suffix == ".ipynb" else ast.parse)(text)
        except (SyntaxError, ValueError) as error:
            raise UsageError(_no_longer_read(path, error)) from None
    real = Path(os.path.realpath(path))
    if not os.access(real, os.W_OK):
        raise UsageError(say("{file} may not be written to; nothing was written", file=str(path)))
    try:
        data = text.encode(encoding_of(real))
    except UnicodeEncodeError as error:
        raise UsageError(
            say(
                "{file}: the edited text does not fit its encoding ({error}); nothing was written",
                file=str(path),
                error=str(error),
            )
        ) from None
    descriptor, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(real.stat().st_mode & 0o7777)
        yield temporary, real
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
