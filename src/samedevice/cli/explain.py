"""`samedevice explain`: a pasted traceback or error line, from any machine, into cause, place and mend. No torch."""

from __future__ import annotations

import codecs
import io
import sys
from dataclasses import replace
from pathlib import Path

from samedevice import reports
from samedevice.cli.arguments import Parser, colours
from samedevice.errors import UsageError
from samedevice.explaining.explain import explain
from samedevice.findings import Finding, Report
from samedevice.linting.lint import lint
from samedevice.texts import say, shown

__all__ = ["main"]

_EXAMPLES = say(
    """\
  python train.py 2>&1 | samedevice explain -       what another program printed
  samedevice explain error.log                      a file
  samedevice explain                                paste it, then Ctrl-D

exit status: 0 explained, 1 no device fault in the text, 2 the text could not be read."""
)


def main(argv: list[str]) -> int:
    """Explain the text that `argv` names; see `samedevice explain --help`."""
    parser = Parser("explain", say("Explain a traceback or an error line: cause, place, how to mend it."), _EXAMPLES)
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help=shown(say("a text file; - or nothing: standard input"))
    )
    parser.add_argument("--format", choices=[name for name in reports.RENDERERS if name != "html"], default="text")
    options = parser.parse_args(argv)
    finding = explain(_read(options.file))
    if finding is None:
        none = say("no device fault here: no line of this text is an error of PyTorch about devices")
        print(f"samedevice explain: {shown(none)}", file=sys.stderr)
        return 1
    report = Report(findings=(_with_source(finding),), outcome="finding")
    if options.format == "text":
        print(reports.to_text(report, colours=colours(sys.stdout)), end="")
    else:
        print(reports.RENDERERS[options.format](report), end="")
    return 0


def _with_source(finding: Finding) -> Finding:
    """What the linter sees at the same place, where the file is here: a text alone names no line left behind.

    The linter may report where a tensor was left behind instead of where it is used; then its name stands on the line.
    """
    place = finding.location
    if place is None or not Path(place.file).is_file():
        return finding
    code = place.source or ""
    seen = [other for other in lint([place.file]).findings if other.location is not None]
    here = [other for other in seen if other.location and other.location.line == place.line]
    named = [other for other in seen if other.culprit is not None and other.culprit.name in code]
    if not (here or named):
        return finding
    best = (here or named)[0]
    return replace(
        finding,
        code=best.code,
        cause=best.cause,
        culprit=best.culprit or finding.culprit,
        reasons=(*finding.reasons, best.message),
        fix=best.fix or (finding.fix if best.code == finding.code else None),
    )


def _read(file: str) -> str:
    if file == "-":
        return _read_input()
    try:
        return _decoded(Path(file).read_bytes())
    except OSError as error:
        raise UsageError(say("cannot read {file}: {reason}", file=file, reason=error.strerror or str(error))) from None


def _read_input() -> str:
    if sys.stdin is None:
        raise UsageError(say("there is no standard input; name a file"))
    if sys.stdin.isatty():
        print(shown(say("Paste the traceback, then Ctrl-D (Ctrl-Z and Enter on Windows):")), file=sys.stderr)
    if not isinstance(sys.stdin, io.TextIOWrapper):
        return sys.stdin.read()
    return _decoded(sys.stdin.buffer.read())


def _decoded(data: bytes) -> str:
    """The text, whatever wrote it: PowerShell's `>` writes UTF-16, and logs hold bytes of any kind."""
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if utf16 else "utf-8-sig", errors="replace")
