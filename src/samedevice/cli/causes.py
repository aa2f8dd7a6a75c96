"""`samedevice causes`: the catalogue, or one cause with its wrong and right examples."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

from samedevice.causes import catalogue
from samedevice.causes.cause import MARK, Cause
from samedevice.cli.arguments import Parser, colours

__all__ = ["main"]

_EXAMPLES = """\
  samedevice causes                  all of them, in short
  samedevice causes SD103            one, with examples
  samedevice causes plain-attribute  the same one, by its name"""


def main(argv: list[str]) -> int:
    """Print the catalogue or one cause; see `samedevice causes --help`."""
    parser = Parser("causes", "The causes of device faults that samedevice knows.", _EXAMPLES)
    parser.add_argument("cause", nargs="?", metavar="CODE", help="a code (SD103) or a name (plain-attribute)")
    wanted = parser.parse_args(argv).cause
    lines = _all() if wanted is None else _one(catalogue.find(wanted), colours(sys.stdout))
    print("\n".join(lines))
    return 0


def _all() -> Iterator[str]:
    for cause in catalogue.all_causes():
        head = f"{cause.code}  {cause.slug:<25} "
        yield from textwrap.wrap(cause.summary, 100, initial_indent=head, subsequent_indent=" " * len(head))


def _one(cause: Cause, coloured: bool) -> Iterator[str]:
    bold, red, green, plain = ("\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[0m") if coloured else ("", "", "", "")
    yield f"{bold}{cause.code} {cause.slug}{plain}"
    yield from _paragraph(cause.summary)
    yield from ("", f"{bold}Why it fails{plain}", *_paragraph(cause.why))
    for example in cause.examples:
        yield from ("", f"{red}Wrong{plain} (`{MARK.strip()}` marks the line)")
        yield textwrap.indent(example.wrong.strip(), "    ")
        yield from ("", f"{green}Right{plain}", textwrap.indent(example.right.strip(), "    "))
    yield from ("", f"{bold}How safe the fix is{plain}", *_paragraph(cause.fix_safety))
    for reason in (cause.not_static, cause.not_run, cause.not_fixed):
        yield from _paragraph(reason or "")
    yield from ("", f"Source: {cause.source}")


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)
