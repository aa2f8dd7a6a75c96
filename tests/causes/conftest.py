import re

import pytest

from samedevice.reports import to_text
from samedevice.reports.columns import width
from samedevice.texts import Text, shown

ENGLISH = re.compile(r"\b(the|an?|is|are|was|were|with|from|that|which|it|not|no|and|or)\b")


@pytest.fixture
def reads_well(monkeypatch, is_translated):
    """What a person reads of a report, in both languages: on one screen, and no English in the Chinese."""

    def check(report):
        for language in ("en", "zh_CN"):
            monkeypatch.setenv("SAMEDEVICE_LANG", language)
            lines = to_text(report).splitlines()
            assert len(lines) <= 15 * len(report.findings)
            # A line that is to be written may be longer: it is there to be copied.
            assert [line for line in lines if width(line) > 100 and not line.startswith("  + ")] == []
        for finding in report.findings:
            is_translated(finding)

    return check


@pytest.fixture
def is_translated(monkeypatch):
    """No English in what a finding says in Chinese."""

    def check(finding):
        monkeypatch.setenv("SAMEDEVICE_LANG", "zh_CN")
        for sentence in sentences_of(finding):
            assert isinstance(sentence, Text), sentence
            assert not ENGLISH.findall(re.sub("`[^`]*`", "", shown(sentence))), shown(sentence)

    return check


def sentences_of(finding):
    """All but PyTorch's own words, and code."""
    said = finding.raised.message.splitlines()[0] if finding.raised else None
    sentences = [finding.message, *finding.reasons] if finding.message != said else finding.reasons
    return [*sentences, finding.fix.summary] if finding.fix and isinstance(finding.fix.summary, Text) else sentences
