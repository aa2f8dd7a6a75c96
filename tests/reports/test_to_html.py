import re
from dataclasses import replace
from html.parser import HTMLParser

from samedevice.findings import Culprit, Placement, Report, Transfer
from samedevice.reports import to_html

VOID = {"meta"}


class Checker(HTMLParser):
    """Elements must nest, and none may reach outside the page."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.seen = set()

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        assert not {name for name, _ in attributes} & {"src", "href", "onclick", "onerror"}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check(page):
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return checker.seen


def test_the_page_is_whole_and_refers_to_nothing_outside(run_report):
    page = to_html(run_report)
    assert page.startswith("<!doctype html>")
    assert not check(page) & {"script", "link", "img", "iframe", "object"}
    assert not re.search(r"https?://|@import|url\(", page)
    assert "prefers-color-scheme: dark" in page


def test_the_page_says_what_the_text_says(run_report):
    page = to_html(run_report)
    for part in ("self.pe", "train.py:31 in forward", "SD103 plain-attribute", "passed it by", "cpu (wanted: cuda:0)"):
        assert part in page
    assert "<ins>+         self.register_buffer(&quot;pe&quot;, pe, persistent=False)</ins>" in page


def test_user_text_is_escaped(run_report, met):
    hostile = replace(
        met,
        message="<script>alert(1)</script>",
        culprit=Culprit("<img src=x onerror=alert(1)>", "</style>.py", 3, "<b>", source="</pre><script>"),
    )
    page = to_html(replace(run_report, findings=(hostile,), script="</title><script>"))
    assert "script" not in check(page)


def test_every_part_of_a_report_is_shown(lint_report):
    full = replace(
        lint_report,
        placements=(Placement("model", "0.weight", "cuda:0", kind="parameter"),),
        transfers=(Transfer("train.py", 3, "cpu", "cuda:0", 2, 1280),),
        notes=("left alone",),
    )
    page = to_html(full)
    check(page)
    for part in ("broken.py", "1 parameter on cuda:0", "1,280", "left alone"):
        assert part in page


def test_nothing_found():
    assert "No device fault found" in to_html(Report())


def test_backticks_mark_code_and_what_pytorch_said_wraps(run_report, met):
    spoken = replace(met, reasons=("A plain list: `.to()` passes `<it>` by, and `a lone one stays.",))
    page = to_html(replace(run_report, findings=(spoken,)))
    check(page)
    assert "<li>A plain list: <code>.to()</code> passes <code>&lt;it&gt;</code> by, and `a lone one stays.</li>" in page
    assert '<pre class="said">RuntimeError: Expected all tensors' in page
    assert ".said { white-space: pre-wrap;" in page
