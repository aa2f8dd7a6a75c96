"""The files that a mend may change, as they are and as they would be. Writes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from samedevice.config import PROJECT_MARKS
from samedevice.errors import UsageError
from samedevice.findings import Edit
from samedevice.fixing.edits import Change, apply_edits
from samedevice.fixing.files import findings_if_valid
from samedevice.linting.source import SourceError, decode, read
from samedevice.texts import say
from samedevice.usercode import is_user_file

__all__ = ["Project"]


@dataclass(frozen=True)
class Project:
    """The user's files around a program, with edits that are not written yet."""

    main: Path
    root: Path
    texts: tuple[tuple[str, str, str], ...] = field(default=())
    """Real path, the text on disk and the edited text, of each file that was edited; sorted."""

    @staticmethod
    def around(main: Path) -> Project:
        """The project that the file `main` belongs to: the nearest folder around it that is marked as one.

        Args:
            main: the file that is run first.

        Raises:
            UsageError: it cannot be read.
        """
        try:
            decode(read(main))
        except SourceError as error:
            raise UsageError(say("{file}: {reason}", file=str(main), reason=error.message)) from None
        real = Path(os.path.realpath(main))
        home = Path.home()
        marked = [folder for folder in real.parents if any((folder / mark).exists() for mark in PROJECT_MARKS)]
        root = next((folder for folder in marked if folder != home), real.parent)
        return Project(real, root)

    def text(self, path: Path) -> str | None:
        """The text of a file as edited so far; None for one that may not be edited or cannot be read."""
        real = os.path.realpath(path)
        for known, _, text in self.texts:
            if known == real:
                return text
        return _read(real) if self.may_edit(path) else None

    def both(self, file: str) -> tuple[str, str]:
        """The text of a file on disk and as edited so far: the same where it was not, empty where it cannot be read."""
        real = os.path.realpath(file)
        for known, before, after in self.texts:
            if known == real:
                return before, after
        text = _read(real) or ""
        return text, text

    def may_edit(self, path: Path) -> bool:
        """Whether `path` is a file of the user's own inside the project, wherever its links lead."""
        real = Path(os.path.realpath(path))
        return real.suffix in (".py", ".pyw", "") and real.is_relative_to(self.root) and is_user_file(str(real))

    def edited(self, edits: Iterable[Edit]) -> Project | None:
        """The project with all of `edits` made; None where one is not allowed, changes nothing, or breaks its file."""
        files: dict[str, list[Edit]] = {}
        for edit in edits:
            files.setdefault(os.path.realpath(edit.file), []).append(edit)
        texts = {real: (before, after) for real, before, after in self.texts}
        for real, own in files.items():
            text = self.text(Path(real))
            if text is None:
                return None
            after = apply_edits(text, own)
            if after == text or findings_if_valid(after, real, None) is None:
                return None
            texts[real] = (texts[real][0] if real in texts else text, after)
        return Project(self.main, self.root, tuple((real, *texts[real]) for real in sorted(texts)))

    def data(self) -> Mapping[str, bytes]:
        """What the edited files hold, by their real paths."""
        return {change.file: change.data for change in (Change(*texts) for texts in self.texts)}

    def changes(self) -> tuple[Change, ...]:
        """The edited files, named as seen from the current folder."""
        folder = os.path.realpath(Path.cwd())
        return tuple(
            Change(os.path.relpath(real, folder) if Path(real).is_relative_to(folder) else real, before, after)
            for real, before, after in self.texts
            if before != after
        )


def _read(real: str) -> str | None:
    try:
        return decode(read(Path(real)))
    except SourceError:
        return None
