"""The settings of `[tool.samedevice]` in pyproject.toml, checked and as values. Reads that one file and nothing else.

[tool.samedevice]
select = ["SD1", "optimizer-state"]     # codes, beginnings of codes, names of causes or groups; default: "faults"
extend-select = ["smells"]              # besides these
ignore = ["SD107"]
exclude = ["legacy", "notebooks/*.py"]  # besides the folders that nobody wants linted, such as .venv
[tool.samedevice.per-file-ignores]
"tests/*" = ["SD107"]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any

from samedevice.errors import UsageError
from samedevice.texts import Text, say

__all__ = ["DEFAULT_EXCLUDE", "GROUPS", "PROJECT_MARKS", "Config", "load"]

DEFAULT_EXCLUDE = (
    ".*",
    "__pycache__",
    "venv",
    "env",
    "site-packages",
    "node_modules",
    "build",
    "dist",
    "*.egg-info",
)
"""Folders that hold no source of one's own: hidden ones, environments, what a build leaves."""

PROJECT_MARKS = frozenset({"pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg"})
"""What stands in the outermost folder of a project."""

GROUPS = {"faults": ("SD1", "SD2", "SD9"), "smells": ("SD3",)}
"""What codes are called by together. Smells are no faults: they are only looked for where they are selected."""

_LISTS = ("select", "extend-select", "ignore", "exclude")
_KEYS = (*_LISTS, "per-file-ignores")


@dataclass(frozen=True, slots=True)
class Config:
    """What to look for and where. Codes may be whole ("SD103"), a beginning ("SD1") or a cause's name."""

    root: Path = field(default_factory=Path.cwd)
    """The folder that patterns are relative to: that of the pyproject.toml, or the current one."""
    select: tuple[str, ...] = ()
    """Empty: all faults."""
    extend_select: tuple[str, ...] = ()
    """Besides what `select` says."""
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def wants(self, code: str, slug: str, file: str | Path) -> bool:
        """Whether a finding of this cause in `file` is to be reported.

        Args:
            code: e.g. "SD103".
            slug: e.g. "plain-attribute".
            file: the file that it is in, absolute or from the current folder.
        """
        if not _names((*(self.select or ("faults",)), *self.extend_select), code, slug):
            return False
        if _names(self.ignore, code, slug):
            return False
        path = self._relative(file)
        return not any(
            _matches(path, pattern) and _names(ignored, code, slug)
            for pattern, ignored in self.per_file_ignores.items()
        )

    @property
    def wants_smells(self) -> bool:
        """Whether any smell may be reported; looking for them would else be for nothing."""
        # A name that is no group may be a smell's: this layer does not know them.
        return any(
            each.startswith("SD3") if each.startswith("SD") and each != "SD" else each != "faults"
            for each in (*self.select, *self.extend_select)
        )

    def excludes(self, path: str | Path) -> bool:
        """Whether a file or folder met on the way is to be passed by; one named on the command line is not asked for.

        Args:
            path: absolute or from the current folder.
        """
        relative = self._relative(path)
        return any(_matches(relative, pattern) for pattern in (*DEFAULT_EXCLUDE, *self.exclude))

    def _relative(self, path: str | Path) -> PurePath:
        absolute = Path(path).absolute()
        return absolute.relative_to(self.root) if absolute.is_relative_to(self.root) else PurePath(absolute.name)


def load(start: str | Path = ".") -> Config:
    """The settings that hold for `start`: those of the nearest pyproject.toml above it that has a `[tool.samedevice]`.

    Args:
        start: a file or folder.

    Returns:
        The settings; the defaults where there is no such table.

    Raises:
        UsageError: the file is no TOML, or a setting is unknown or of the wrong kind; the message names both.
    """
    start = Path(start).absolute()
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file() and (table := _table(file)) is not None:
            return _config(table, file)
    return Config(root=start if start.is_dir() else start.parent)


def _table(file: Path) -> dict[str, Any] | None:
    try:
        text = file.read_text(encoding="utf-8")
        if "samedevice" not in text:
            return None  # most have no such table, and need no parser
        if sys.version_info >= (3, 11):
            import tomllib
        else:
            import tomli as tomllib
        found = tomllib.loads(text).get("tool", {}).get("samedevice")
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(say("cannot read {file}: {reason}", file=str(file), reason=str(error))) from None
    if found is not None and not isinstance(found, dict):
        raise UsageError(say("{file}: tool.samedevice must be a table, not {value}", file=str(file), value=repr(found)))
    return found


def _config(table: dict[str, Any], file: Path) -> Config:
    for key in table:
        if key not in _KEYS:
            raise UsageError(_unknown(key, file))
    per_file = table.get("per-file-ignores", {})
    if not isinstance(per_file, dict):
        raise UsageError(
            say(
                "{file}: per-file-ignores must be a table from pattern to a list of codes, not {value}",
                file=str(file),
                value=repr(per_file),
            )
        )
    return Config(
        root=file.parent,
        per_file_ignores={pattern: _strings(codes, pattern, file) for pattern, codes in per_file.items()},
        **{key.replace("-", "_"): _strings(table.get(key, []), key, file) for key in _LISTS},
    )


def _unknown(key: str, file: Path) -> Text:
    import difflib

    near = difflib.get_close_matches(key, _KEYS, n=1)
    if near:
        return say(
            "{file}: tool.samedevice has no setting {key!r}; did you mean {near!r}?",
            file=str(file),
            key=key,
            near=near[0],
        )
    return say(
        "{file}: tool.samedevice has no setting {key!r}; settings are {settings}",
        file=str(file),
        key=key,
        settings=", ".join(_KEYS),
    )


def _strings(value: Any, key: str, file: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(
            say("{file}: {key} must be a list of strings, not {value}", file=str(file), key=key, value=repr(value))
        )
    return tuple(value)


def _names(wanted: tuple[str, ...], code: str, slug: str) -> bool:
    return any(
        slug == each
        or each == "ALL"
        or (each.startswith("SD") and code.startswith(each))
        or any(code.startswith(start) for start in GROUPS.get(each, ()))
        for each in wanted
    )


def _matches(path: PurePath, pattern: str) -> bool:
    """Whether `path` or a folder that it is in fits `pattern`; one without a slash fits a name at any depth."""
    pattern = pattern.rstrip("/")
    candidates = [path, *path.parents][: len(path.parts)]
    texts = [each.as_posix() if "/" in pattern else each.name for each in candidates]
    return any(fnmatchcase(text, pattern) for text in texts)
