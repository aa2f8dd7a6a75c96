"""The settings of `[tool.samedevice]` in pyproject.toml, checked and as values. Reads that one file and nothing else.

[tool.samedevice]
select = ["SD1", "optimizer-state"]     # codes, beginnings of codes, or names of causes; default: all
ignore = ["SD107"]
exclude = ["legacy", "notebooks/*.py"]  # besides the folders that nobody wants linted, such as .venv
[tool.samedevice.per-file-ignores]
"tests/*" = ["SD107"]
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any

from samedevice.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["DEFAULT_EXCLUDE", "Config", "load"]

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

_LISTS = ("select", "ignore", "exclude")
_KEYS = (*_LISTS, "per-file-ignores")


@dataclass(frozen=True, slots=True)
class Config:
    """What to look for and where. Codes may be whole ("SD103"), a beginning ("SD1") or a cause's name."""

    root: Path = field(default_factory=Path.cwd)
    """The folder that patterns are relative to: that of the pyproject.toml, or the current one."""
    select: tuple[str, ...] = ()
    """Empty: everything."""
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
        if self.select and not _names(self.select, code, slug):
            return False
        if _names(self.ignore, code, slug):
            return False
        path = self._relative(file)
        return not any(
            _matches(path, pattern) and _names(ignored, code, slug)
            for pattern, ignored in self.per_file_ignores.items()
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
        found = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("samedevice")
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from None
    if found is not None and not isinstance(found, dict):
        raise UsageError(f"{file}: tool.samedevice must be a table, not {found!r}")
    return found


def _config(table: dict[str, Any], file: Path) -> Config:
    for key in table:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; settings are {', '.join(_KEYS)}"
            raise UsageError(f"{file}: tool.samedevice has no setting {key!r}{hint}")
    per_file = table.get("per-file-ignores", {})
    if not isinstance(per_file, dict):
        raise UsageError(f"{file}: per-file-ignores must be a table from pattern to a list of codes, not {per_file!r}")
    return Config(
        root=file.parent,
        per_file_ignores={pattern: _strings(codes, pattern, file) for pattern, codes in per_file.items()},
        **{key: _strings(table.get(key, []), key, file) for key in _LISTS},
    )


def _strings(value: Any, key: str, file: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{file}: {key} must be a list of strings, not {value!r}")
    return tuple(value)


def _names(wanted: tuple[str, ...], code: str, slug: str) -> bool:
    return any(slug == each or each == "ALL" or (each.startswith("SD") and code.startswith(each)) for each in wanted)


def _matches(path: PurePath, pattern: str) -> bool:
    """Whether `path` or a folder that it is in fits `pattern`; one without a slash fits a name at any depth."""
    pattern = pattern.rstrip("/")
    candidates = [path, *path.parents][: len(path.parts)]
    texts = [each.as_posix() if "/" in pattern else each.name for each in candidates]
    return any(fnmatchcase(text, pattern) for text in texts)
