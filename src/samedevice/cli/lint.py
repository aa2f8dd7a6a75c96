"""`samedevice lint`: device faults in source, found without running it and without torch; mended where asked for."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from samedevice import reports
from samedevice.causes.catalogue import SLUGS
from samedevice.cli.arguments import Parser, colours
from samedevice.config import Config, load
from samedevice.errors import UsageError
from samedevice.findings import Report
from samedevice.linting.lint import lint

__all__ = ["main"]

_FORMATS = ("text", "json", "sarif", "github")
_EXAMPLES = """\
  samedevice lint src/ train.py
  samedevice lint --select SD1 --ignore hardcoded-device src/    codes, beginnings of codes, names
  samedevice lint --diff src/                                    show what --fix would change
  samedevice lint --fix src/                                     make the safe edits, then report what is left
  samedevice lint --format github .                              beside the lines of a pull request

On the line, `# noqa: SD103` or `# samedevice: ignore[SD103]` silences a finding; [tool.samedevice] in pyproject.toml
holds select, ignore, exclude and per-file-ignores.

exit status: 0 nothing found, 1 findings, 2 wrong usage or a file that could not be read or parsed."""


def main(argv: list[str]) -> int:
    """Lint the files that `argv` names; see `samedevice lint --help`."""
    options = _parser().parse_args(argv)
    config = _config(options)
    if options.diff:
        return _show_changes(options, config)
    if options.fix:
        _make_changes(options, config)
    report = lint(options.paths, config=config)
    if options.format == "text":
        print(reports.to_text(report, colours=colours(sys.stdout)), end="")
    else:
        print(reports.RENDERERS[options.format](report), end="")
    return _status(report)


def _parser() -> Parser:
    parser = Parser("lint", "Find device faults in source files, without running them and without torch.", _EXAMPLES)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, and folders whose .py files are taken")
    parser.add_argument("--format", choices=_FORMATS, default="text")
    parser.add_argument("--select", metavar="CODES", help="only these, comma-separated")
    parser.add_argument("--ignore", metavar="CODES", help="not these, comma-separated")
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--fix", action="store_true", help="make the safe edits in the files")
    change.add_argument("--diff", action="store_true", help="show these edits, change nothing")
    parser.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix or --diff: also edits that may change more"
    )
    return parser


def _show_changes(options: Namespace, config: Config) -> int:
    """Print what `--fix` would change; 1 where there is something to find, as without `--diff`."""
    from samedevice.fixing import proposed_changes

    for change in proposed_changes(options.paths, config=config, unsafe=options.unsafe_fixes):
        print(change.diff, end="")
    report = lint(options.paths, config=config)
    for error in report.errors:
        print(f"{error.file}: {error.message}", file=sys.stderr)
    return _status(report)


def _make_changes(options: Namespace, config: Config) -> None:
    # Loaded here: mending brings the machinery of running scripts, which linting alone has no use for.
    from samedevice.fixing import fix_files

    changes = fix_files(options.paths, config=config, unsafe=options.unsafe_fixes)
    for change in changes:
        print(f"{change.file}: mended", file=sys.stderr)


def _config(options: Namespace) -> Config:
    """The settings of the files' project, with what the command line says in their place."""
    folders = [path if path.is_dir() else path.parent for path in map(Path, options.paths)]
    config = load(os.path.commonpath([folder.absolute() for folder in folders]))
    if options.select is not None:
        config = replace(config, select=_codes(options.select))
    if options.ignore is not None:
        config = replace(config, ignore=(*config.ignore, *_codes(options.ignore)))
    _check_codes(
        [*config.select, *config.ignore, *(code for codes in config.per_file_ignores.values() for code in codes)]
    )
    return config


def _codes(text: str) -> tuple[str, ...]:
    return tuple(code for code in (part.strip() for part in text.split(",")) if code)


def _check_codes(codes: Iterable[str]) -> None:
    for code in codes:
        known = code == "ALL" or code in SLUGS.values()
        if not known and not (code.startswith("SD") and any(each.startswith(code) for each in SLUGS)):
            raise UsageError(f"no cause is called {code!r} (`samedevice causes` lists them)")


def _status(report: Report) -> int:
    return 2 if report.errors else 1 if report.findings else 0
