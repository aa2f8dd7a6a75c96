"""`samedevice causes`: the catalogue, or one cause with its wrong and right examples."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

from samedevice.causes import catalogue
from samedevice.causes.cause import MARK, Cause
from samedevice.cli.arguments import Parser, colours
from samedevice.reports.columns import wrap
from samedevice.texts import say, shown

__all__ = ["main"]

_EXAMPLES = say(
    """\
  samedevice causes                  all of them, in short
  samedevice causes SD103            one, with examples
  samedevice causes plain-attribute  the same one, by its name"""
)


def main(argv: list[str]) -> int:
    """Print the catalogue or one cause; see `samedevice causes --help`."""
    parser = Parser("causes", say("The causes of device faults that samedevice knows."), _EXAMPLES)
    parser.add_argument(
        "cause", nargs="?", metavar="CODE", help=shown(say("a code (SD103) or a name (plain-attribute)"))
    )
    wanted = parser.parse_args(argv).cause
    lines = _all() if wanted is None else _one(catalogue.find(wanted), colours(sys.stdout))
    print("\n".join(lines))
    return 0


def _all() -> Iterator[str]:
    for cause in (*catalogue.all_causes(), *catalogue.all_smells()):
        head = f"{cause.code}  {cause.slug:<25} "
        yield from wrap(shown(cause.summary), 100, first=head, later=" " * len(head))


def _one(cause: Cause, coloured: bool) -> Iterator[str]:
    bold, red, green, plain = ("\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[0m") if coloured else ("", "", "", "")
    yield f"{bold}{cause.code} {cause.slug}{plain}"
    yield from _paragraph(cause.summary)
    yield from ("", f"{bold}{shown(say('Why it fails'))}{plain}", *_paragraph(cause.why))
    for example in cause.examples:
        wrong = f"{red}{shown(say('Wrong'))}{plain}"
        yield from ("", shown(say("{wrong} (`{mark}` marks the line)", wrong=wrong, mark=MARK.strip())))
        yield textwrap.indent(example.wrong.strip(), "    ")
        yield from ("", f"{green}{shown(say('Right'))}{plain}", textwrap.indent(example.right.strip(), "    "))
    yield from ("", f"{bold}{shown(say('How safe the fix is'))}{plain}", *_paragraph(cause.fix_safety))
    for reason in (cause.not_static, cause.not_run, cause.not_fixed):
        yield from _paragraph(reason) if reason else ()
    yield from ("", shown(say("Source: {address}", address=cause.source)))


def _paragraph(text: str) -> list[str]:
    return wrap(shown(text), 100)
