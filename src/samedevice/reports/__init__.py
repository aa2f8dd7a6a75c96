"""Renderers: each turns a `Report` into text and does nothing else.

A renderer reads values only. It opens no file, looks at no tensor and decides nothing about what is a fault.
`RENDERERS` is the one table of formats; a new one is a new module and a line there.
"""

from __future__ import annotations

from collections.abc import Callable

from samedevice.findings import Report
from samedevice.reports.to_github import to_github as to_github
from samedevice.reports.to_html import to_html as to_html
from samedevice.reports.to_json import to_json as to_json
from samedevice.reports.to_mermaid import to_mermaid as to_mermaid
from samedevice.reports.to_sarif import to_sarif as to_sarif
from samedevice.reports.to_text import to_text as to_text

__all__ = ["RENDERERS", "to_github", "to_html", "to_json", "to_mermaid", "to_sarif", "to_text"]

RENDERERS: dict[str, Callable[[Report], str]] = {
    "text": to_text,
    "json": to_json,
    "sarif": to_sarif,
    "github": to_github,
    "html": to_html,
}
"""The name of each format, as `--format` takes it, and its renderer."""
