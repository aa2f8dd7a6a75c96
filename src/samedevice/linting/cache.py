"""What was found in files that have not changed since: one small JSON file each, in the user's cache folder.

An entry is found by what the file holds, what it is called and which linter looked at it. It names the other files that
were read along with it; where one of those has changed, the entry is none. Whatever is wrong with a cache only costs
time: it is not read, and written anew.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import samedevice
from samedevice.findings import Culprit, Edit, Finding, Fix, Location
from samedevice.texts import packed, unpacked

__all__ = ["Cache", "default_folder"]

_FORMAT = 2
_KEPT_DAYS = 30
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# Findings of `samedevice lint`; may be deleted.\n"
"""Source: "Cache Directory Tagging Specification"; tells backup programs that nothing here is worth keeping."""


def default_folder() -> Path:
    """Where caches belong on this system.

    Source: XDG Base Directory Specification; on macOS and Windows what their guidelines name.
    """
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        given = os.environ.get("XDG_CACHE_HOME", "")
        base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return base / "samedevice"


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder with entries. Any number of processes may use it at once: an entry comes by a rename, whole."""

    folder: Path
    _digests: dict[str, str | None] = field(default_factory=dict, compare=False)
    """Of other files, as they are met in this run."""

    def get(self, text: str, filename: str, *, smells: bool) -> tuple[Finding, ...] | None:
        """What was found in `text`; None where that is not known.

        Args:
            text: the source.
            filename: its name as locations give it.
            smells: whether smells were looked for.
        """
        import json

        try:
            entry = json.loads(self._path(text, filename, smells=smells).read_bytes())
            if any(self._digest_of(file) != digest for file, digest in entry["reads"].items()):
                return None
            return tuple(_finding(each) for each in entry["findings"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def put(
        self, text: str, filename: str, findings: Iterable[Finding], *, smells: bool, reads: Iterable[str] = ()
    ) -> None:
        """Keep what was found in `text`; where that cannot be written, nothing happens.

        Args:
            text: the source.
            filename: its name as locations give it.
            findings: everything that was found, silenced or not.
            smells: whether smells were looked for.
            reads: other files whose contents had a part in it, and files that were looked for in vain.
        """
        import json
        import tempfile

        entry = {
            "reads": {file: self._digest_of(file) for file in reads},
            "findings": [_entry(finding) for finding in findings],
        }
        path = self._path(text, filename, smells=smells)
        with contextlib.suppress(OSError, ValueError):
            self._make(path.parent)
            descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".new")
            try:
                with os.fdopen(descriptor, "w", encoding="ascii") as file:
                    json.dump(entry, file)
                Path(name).replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise

    def _path(self, text: str, filename: str, *, smells: bool) -> Path:
        # A file's own folder decides what it imports.
        said = "\0".join([_linter(), filename, os.path.realpath(filename), str(smells), text])
        name = _digest(said.encode(errors="surrogatepass"))
        return self.folder / "lint" / name[:2] / name[2:]

    def _digest_of(self, file: str) -> str | None:
        """What a file holds, or which names there are in a folder, in short; None where there is neither."""
        if file not in self._digests:
            try:
                data = _names_in(Path(file)) if Path(file).is_dir() else Path(file).read_bytes()
                self._digests[file] = _digest(data)
            except OSError:
                self._digests[file] = None
        return self._digests[file]

    def _make(self, folder: Path) -> None:
        if folder.is_dir():
            return
        folder.mkdir(parents=True, exist_ok=True)
        tag = self.folder / "CACHEDIR.TAG"
        if not tag.exists():
            tag.write_text(_TAG, encoding="ascii")
            (self.folder / ".gitignore").write_text("*\n", encoding="ascii")

    def prune(self) -> None:
        """Take away entries that were written long ago; at most once a day, whoever asks."""
        stamp = self.folder / "lint" / "pruned"
        now = time.time()
        with contextlib.suppress(OSError):
            if stamp.exists() and now - stamp.stat().st_mtime < 24 * 3600:
                return
            if not stamp.parent.is_dir():
                return
            stamp.touch()
            for path in stamp.parent.glob("??/*"):
                if now - path.stat().st_mtime > _KEPT_DAYS * 24 * 3600:
                    path.unlink(missing_ok=True)


def _digest(data: bytes) -> str:
    import hashlib  # brings OpenSSL

    return hashlib.blake2b(data, digest_size=20).hexdigest()


@functools.cache
def _linter() -> str:
    """Which linter it is: its version, the Python whose parser it uses, and its own files, which may be edited."""
    here = Path(__file__).parent.parent
    state = [f"{_FORMAT} {samedevice.__version__} {sys.version}"]
    for folder in ("linting", "linting/devices", "linting/rules", "linting/smells", "causes"):
        with contextlib.suppress(OSError), os.scandir(here / folder) as entries:
            stats = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".py")]
            state += sorted(f"{folder}/{name} {stat.st_mtime_ns} {stat.st_size}" for name, stat in stats)
    return _digest("\n".join(state).encode())


def _names_in(folder: Path) -> bytes:
    """The names in a folder that may be modules, packages or mark a project; others come and go."""
    names = (path.name for path in folder.iterdir())
    kept = sorted(name for name in names if "." not in name[1:] or name.endswith((".py", ".toml", ".cfg")))
    return "\0".join(kept).encode(errors="surrogatepass")


def _entry(finding: Finding) -> dict[str, Any]:
    """A finding of the linter as JSON can hold it, its sentences still translatable."""
    fix = finding.fix
    return {
        **asdict(finding),
        "message": packed(finding.message),
        "reasons": [packed(reason) for reason in finding.reasons],
        "fix": fix and {**asdict(fix), "summary": packed(fix.summary)},
    }


def _finding(entry: dict[str, Any]) -> Finding:
    """A finding of the linter, back from what `_entry` made of it."""
    location, culprit, fix = entry["location"], entry["culprit"], entry["fix"]
    return Finding(
        **{
            **entry,
            "message": unpacked(entry["message"]),
            "location": location and Location(**location),
            "culprit": culprit and Culprit(**culprit),
            "operands": (),
            "reasons": tuple(map(unpacked, entry["reasons"])),
            "fix": fix and Fix(unpacked(fix["summary"]), tuple(Edit(**edit) for edit in fix["edits"]), fix["safe"]),
        }
    )
