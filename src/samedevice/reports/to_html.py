"""Report -> one HTML page that needs nothing else: no script, no font, no picture from elsewhere, light and dark.

Every piece of the user's text goes through `html.escape`; a policy in the page's head forbids whatever might slip by.
"""

from __future__ import annotations

import re
from html import escape

import samedevice
from samedevice.causes.catalogue import by_code
from samedevice.findings import Culprit, Finding, Fix, Location, Operand, Report
from samedevice.reports import wording
from samedevice.texts import language, say, shown

__all__ = ["to_html"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --paper: #f6f7f9; --card: #ffffff;
  --line: #dde2e8; --bad: #b3261e; --badbg: #fdecea; --good: #1b6e3c; --goodbg: #e6f4ea; --code: #eef1f5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #9aa6b5; --paper: #12161c; --card: #1a2028;
  --line: #2d3642; --bad: #ff8a80; --badbg: #3a1d1c; --good: #7bd89a; --goodbg: #17311f; --code: #222a34; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h3 { font-size: .8rem; letter-spacing: .06em; text-transform: uppercase; color: var(--soft); margin: 1.2rem 0 .3rem; }
.sub, footer { color: var(--soft); } footer { margin-top: 2rem; font-size: .875rem; }
article { background: var(--card); border: 1px solid var(--line); border-left: .3rem solid var(--bad);
  border-radius: .5rem; padding: 1.25rem; margin: 1.25rem 0; }
article.warning { border-left-color: #b98a00; }
code, pre { font: .9em/1.5 ui-monospace, Menlo, Consolas, monospace; }
pre { background: var(--code); border-radius: .35rem; padding: .6rem .8rem; margin: .3rem 0; overflow-x: auto; }
.said { white-space: pre-wrap; overflow-wrap: anywhere; }
.no { color: var(--soft); user-select: none; padding-right: .8rem; }
del, ins, samp { display: block; font: inherit; text-decoration: none; }
del { background: var(--badbg); color: var(--bad); } ins { background: var(--goodbg); color: var(--good); }
.chip { display: inline-block; border: 1px solid var(--line); border-radius: 1rem; padding: 0 .6rem;
  white-space: nowrap; }
.off { background: var(--badbg); color: var(--bad); border-color: var(--bad); }
.on { background: var(--goodbg); color: var(--good); border-color: var(--good); }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 600; } ul { margin: .2rem 0; padding-left: 1.2rem; }
"""

_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
<footer>samedevice {version}</footer>
</main>
</body>
</html>
"""


_TAGS = {"-": "del", "+": "ins", " ": "samp"}


def to_html(report: Report) -> str:
    """`report` as a whole HTML page.

    Args:
        report: what a tool found.

    Returns:
        The page; it refers to nothing outside itself.
    """
    parts = [_finding(finding) for finding in report.findings]
    parts += [f"<article><h2>{_text(e.file)}</h2><p>{_text(shown(e.message))}</p></article>" for e in report.errors]
    if report.placements:
        parts.append(_section(say("What lives where"), _list(wording.placement_lines(report))))
    if report.transfers:
        parts.append(_transfers(report))
    if report.notes:
        parts.append(_section(say("Notes"), _list(report.notes)))
    return _PAGE.format(
        language=language().replace("_", "-"),
        title=escape(wording.headline(report)),
        style=_STYLE,
        body="\n".join(parts),
        version=samedevice.__version__,
    )


def _finding(finding: Finding) -> str:
    parts = [f"<h2>{_prose(finding.message)}</h2>"]
    parts.append(f'<p class="sub">{escape(finding.code)} {escape(finding.cause)}</p>')
    if finding.location:
        parts += [_heading(say("Where")), _where(finding.location)]
    if finding.culprit:
        parts += [_heading(say("What is in the wrong place")), _culprit(finding.culprit, finding.expected_device)]
    if finding.operands:
        parts += [_heading(say("What took part")), _operands(finding.operands, finding.expected_device)]
    parts += [_heading(say("Why")), _list(finding.reasons or (by_code(finding.code).why,))]
    if finding.fix:
        parts += [_heading(say("How to mend it")), _fix(finding.fix)]
    if finding.raised:
        raised = f"{finding.raised.type}: {finding.raised.message}"
        parts += [_heading(say("What PyTorch said")), f'<pre class="said">{_text(raised)}</pre>']
    return f'<article class="{escape(finding.severity)}">{"".join(parts)}</article>'


def _where(location: Location) -> str:
    return f"<div>{_text(wording.place(location))}</div>{_source(location.line, location.source)}"


def _culprit(culprit: Culprit, expected: str | None) -> str:
    place = wording.culprit_place(culprit)
    place = _text(shown(say(", from {place}", place=place))) if place else ""
    facts = f"<div><code>{_text(culprit.name)}</code> {_chip(culprit.device, expected)}{place}</div>"
    return facts + _source(culprit.line, culprit.source)


def _source(line: int | None, source: str | None) -> str:
    return f'<pre><span class="no">{line or ""}</span>{_text(source)}</pre>' if source else ""


def _chip(device: str | None, expected: str | None) -> str:
    if not device:
        return ""
    state = "" if expected is None else " on" if device == expected else " off"
    wanted = escape(shown(say(" (wanted: {device})", device=expected))) if state == " off" and expected else ""
    return f'<span class="chip{state}">{escape(device)}{wanted}</span>'


def _operands(operands: tuple[Operand, ...], expected: str | None) -> str:
    rows = "".join(
        f"<tr><td><code>{_text(o.name)}</code></td><td>{escape(o.argument or '')}</td>"
        f"<td>{_chip(o.device, expected)}</td><td>{_text(_shape_and_dtype(o))}</td></tr>"
        for o in operands
    )
    return f"<table>{_heads(say('tensor'), say('argument'), say('device'), say('data'))}{rows}</table>"


def _shape_and_dtype(operand: Operand) -> str:
    return wording.tensor(operand).removeprefix(operand.device).removeprefix(", ")


def _fix(fix: Fix) -> str:
    parts = [f"<div>{_prose(fix.summary)}</div>"]
    for edit in fix.edits:
        lines = "".join(
            f"<{_TAGS[sign]}>{sign} {_text(line)}</{_TAGS[sign]}>"
            for sign, line in wording.changed_lines(edit.old, edit.new)
        )
        parts.append(f'<div class="sub">{_text(edit.file)}:{edit.line}</div><pre>{lines}</pre>')
    if not fix.safe:
        unsafe = shown(say("Look twice: this edit may change more than the device."))
        parts.append(f'<p class="sub">{escape(unsafe)}</p>')
    return "".join(parts)


def _transfers(report: Report) -> str:
    rows = "".join(
        f"<tr><td>{_text(t.file)}:{t.line}</td><td>{escape(t.source)} → {escape(t.target)}</td>"
        f"<td>{t.count}</td><td>{t.bytes:,}</td></tr>"
        for t in report.transfers
    )
    head = _heads(say("line"), say("copy"), say("times"), say("bytes"))
    return _section(say("Copies between devices"), f"<table>{head}{rows}</table>")


def _section(title: str, body: str) -> str:
    return f"<section>{_heading(title)}{body}</section>"


def _heading(title: str) -> str:
    return f"<h3>{escape(shown(title))}</h3>"


def _heads(*titles: str) -> str:
    return "<tr>" + "".join(f"<th>{escape(shown(title))}</th>" for title in titles) + "</tr>"


def _list(items: tuple[str, ...] | list[str]) -> str:
    return "<ul>" + "".join(f"<li>{_prose(item)}</li>" for item in items) + "</ul>"


def _text(text: str | None) -> str:
    return escape(wording.printable(text or ""))


def _prose(text: str) -> str:
    """Text in the reader's language, in which backticks mark code."""
    return re.sub("`([^`\n]+)`", r"<code>\1</code>", _text(shown(text)))
