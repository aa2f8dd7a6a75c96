"""`samedevice lint`: device faults in source, found without running it and without torch; mended where asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from samedevice.causes.catalogue import NAMES
from samedevice.cli.arguments import Parser, colours
from samedevice.config import GROUPS, Config, load
from samedevice.errors import UsageError
from samedevice.findings import FileError, Report
from samedevice.linting import jobs
from samedevice.linting.cache import Cache, default_folder
from samedevice.linting.lint import lint, lint_bytes
from samedevice.texts import say, shown

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["main"]

_FORMATS = ("text", "json", "sarif", "github")
_STDIN = "-"
_EXAMPLES = say(
    """\
  samedevice lint src/ train.py notebook.ipynb
  samedevice lint --select SD1 --ignore hardcoded-device src/    codes, beginnings of codes, names
  samedevice lint --extend-select smells src/                    also what works and is slow or tied to one machine
  samedevice lint --diff src/ | git apply                        show what --fix would change, as a patch
  samedevice lint --fix src/                                     make the safe edits, then report what is left
  samedevice lint --format github .                              beside the lines of a pull request
  samedevice lint --stdin-filename src/a.py - < src/a.py         what an editor holds

On the line, `# noqa: SD103` or `# samedevice: ignore[SD103]` silences a finding; [tool.samedevice] in pyproject.toml
holds select, extend-select, ignore, exclude and per-file-ignores.

exit status: 0 nothing found, 1 findings, 2 wrong usage or a file that could not be read or parsed."""
)


def main(argv: list[str]) -> int:
    """Lint the files that `argv` names; see `samedevice lint --help`."""
    options = _parser().parse_args(argv)
    if options.unsafe and not (options.fix or options.diff):
        raise UsageError(say("--unsafe changes nothing by itself: it goes with --fix or --diff"))
    config = _config(options)
    if _STDIN in options.paths:
        return _lint_stdin(options, config)
    report = _lint(options, config)
    if options.diff:
        return _show_changes(options, config, report)
    if options.fix:
        report = _fixed(options, config, report)
    _print(report, options.format)
    return _status(report)


def _parser() -> Parser:
    description = say("Find device faults in source files, without running them and without torch.")
    parser = Parser("lint", description, _EXAMPLES)

    def add(*names: str, help: str, **how: object) -> None:  # noqa: A002 - argparse's own word
        parser.add_argument(*names, help=shown(help), **how)  # type: ignore[arg-type]

    files = say("files, folders whose .py and .ipynb files are taken, or - for standard input")
    add("paths", nargs="+", metavar="PATH", help=files)
    add("--format", choices=_FORMATS, default="text", help=say("how findings are printed (default: text)"))
    add("--select", metavar="CODES", help=say("only these, comma-separated"))
    add("--extend-select", metavar="CODES", help=say("these, too, comma-separated: e.g. smells"))
    add("--ignore", metavar="CODES", help=say("not these, comma-separated"))
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--fix", action="store_true", help=shown(say("make the safe edits in the files")))
    change.add_argument("--diff", action="store_true", help=shown(say("show these edits as a patch, change nothing")))
    unsafe = say("with --fix or --diff: also edits that may change more than the device")
    add("--unsafe", "--unsafe-fixes", dest="unsafe", action="store_true", help=unsafe)
    add("--stdin-filename", metavar="FILE", help=say("what standard input is called"))
    add("--force-exclude", action="store_true", help=say("pass by excluded files even where they are named"))
    add("--jobs", metavar="N", help=say("how many processes (default: as many as there are cores)"))
    add("--no-cache", action="store_true", help=say("look at every file anew, keep nothing"))
    add("--cache-dir", metavar="FOLDER", help=say("where to keep what was found in files that do not change"))
    return parser


def _processes(given: str | None) -> int:
    if given is None:
        return jobs.available()
    if not given.isdecimal() or not int(given):
        raise UsageError(say("--jobs takes a whole number, at least 1, not {given}", given=given))
    return int(given)


def _lint(options: Namespace, config: Config) -> Report:
    cache = None if options.no_cache else Cache(Path(options.cache_dir or _cache_folder()))
    report = lint(
        options.paths,
        config=config,
        jobs=_processes(options.jobs),
        cache=cache,
        force_exclude=options.force_exclude,
    )
    if cache:
        cache.prune()
    return report


def _cache_folder() -> Path:
    given = os.environ.get("SAMEDEVICE_CACHE_DIR")
    return Path(given) if given else default_folder()


def _print(report: Report, form: str) -> None:
    from samedevice import reports

    if form == "text":
        print(reports.to_text(report, colours=colours(sys.stdout)), end="")
    else:
        print(reports.RENDERERS[form](report), end="")


def _fixable(report: Report, *, unsafe: bool) -> list[str]:
    """The files in which there is something to mend."""
    return list(
        dict.fromkeys(
            finding.location.file
            for finding in report.findings
            if finding.location and finding.fix and finding.fix.edits and (finding.fix.safe or unsafe)
        )
    )


def _show_changes(options: Namespace, config: Config, report: Report) -> int:
    """Print what `--fix` would change; 1 where there is something to find, as without `--diff`."""
    from samedevice.fixing import proposed_changes

    errors = list(report.errors)
    files = _fixable(report, unsafe=options.unsafe)
    for change in proposed_changes(files, config=config, unsafe=options.unsafe, errors=errors):
        _write_bytes(change.patch)
    _print_errors(errors)
    return 2 if errors else _status(report)


def _fixed(options: Namespace, config: Config, report: Report) -> Report:
    """Make the changes, and look again."""
    # Loaded here: mending brings the machinery of running scripts, which linting alone has no use for.
    from samedevice.fixing import fix_files

    errors: list[FileError] = []
    files = _fixable(report, unsafe=options.unsafe)
    changes = fix_files(files, config=config, unsafe=options.unsafe, errors=errors)
    for change in changes:
        print(f"{change.file}: {shown(say('mended'))}", file=sys.stderr)
    if changes:
        report = _lint(options, config)
    return replace(report, errors=(*report.errors, *errors))


def _lint_stdin(options: Namespace, config: Config) -> int:
    """Lint standard input; with `--fix`, the mended text goes to standard output and the report to standard error."""
    if options.paths != [_STDIN]:
        raise UsageError(say("- stands for standard input, and for that alone"))
    name = options.stdin_filename or "<stdin>"
    if options.force_exclude and options.stdin_filename and config.excludes(name):
        return 0
    data = sys.stdin.buffer.read()
    result = lint_bytes(data, name, config=config)
    report = Report(result.findings, "finding" if result.findings else "ok", errors=result.errors)
    if not (options.fix or options.diff):
        _print(report, options.format)
        return _status(report)
    if report.errors:
        _write_bytes(b"" if options.diff else data)
        _print_errors(report.errors)
        return _status(report)
    from samedevice.fixing import fixed_bytes

    change = fixed_bytes(data, name, config=config, unsafe=options.unsafe)
    _write_bytes(change.patch if options.diff else change.data)
    if options.diff:
        return _status(report)
    left = lint_bytes(change.data, name, config=config)
    for finding in left.findings:
        print(str(finding).splitlines()[0], file=sys.stderr)
    return _status(Report(left.findings, errors=left.errors))


def _write_bytes(data: bytes) -> None:
    """To standard output, as they are: a patch has to have the encoding of its file."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is not None:
        buffer.write(data)
        buffer.flush()
    else:
        sys.stdout.write(data.decode(errors="replace"))


def _print_errors(errors: Iterable[FileError]) -> None:
    for error in errors:
        print(f"{error.file}: {shown(error.message)}", file=sys.stderr)


def _config(options: Namespace) -> Config:
    """The settings of the files' project, with what the command line says in their place."""
    config = load(_common_folder(options))
    per_file = (code for codes in config.per_file_ignores.values() for code in codes)
    _check_codes([*config.select, *config.extend_select, *config.ignore, *per_file], config.root / "pyproject.toml")
    if options.select is not None:
        config = replace(config, select=_codes(options.select), extend_select=())
    if options.extend_select is not None:
        config = replace(config, extend_select=(*config.extend_select, *_codes(options.extend_select)))
    if options.ignore is not None:
        config = replace(config, ignore=(*config.ignore, *_codes(options.ignore)))
    _check_codes([*config.select, *config.extend_select, *config.ignore])
    return config


def _common_folder(options: Namespace) -> Path:
    paths = [Path(options.stdin_filename or ".") if path == _STDIN else Path(path) for path in options.paths]
    folders = [path if path.is_dir() else path.parent for path in paths]
    try:
        return Path(os.path.commonpath([folder.absolute() for folder in folders]))
    except ValueError:  # on several drives
        return Path()


def _codes(text: str) -> tuple[str, ...]:
    return tuple(code for code in (part.strip() for part in text.split(",")) if code)


def _check_codes(codes: Iterable[str], file: Path | None = None) -> None:
    for code in codes:
        known = code == "ALL" or code in GROUPS or code in NAMES.values()
        if not known and not (code.startswith("SD") and any(each.startswith(code) for each in NAMES)):
            raise UsageError(
                say("no cause is called {code!r} (`samedevice causes` lists them)", code=code)
                if file is None
                else say(
                    "{file}: no cause is called {code!r} (`samedevice causes` lists them)", file=str(file), code=code
                )
            )


def _status(report: Report) -> int:
    return 2 if report.errors else 1 if report.findings else 0
