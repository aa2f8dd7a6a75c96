"""What holds for every renderer: text from outside neither steers a terminal nor makes it fail."""

from dataclasses import replace

import pytest

from samedevice.findings import FileError, Location, Report
from samedevice.reports import RENDERERS, to_mermaid

HOSTILE = "a\x1b[31m\u202e\udcff\r.py"


@pytest.mark.parametrize("render", [*RENDERERS.values(), to_mermaid])
@pytest.mark.parametrize("column", [None, 3])
def test_names_with_control_characters_and_bytes_that_are_no_text(met, render, column):
    edit = replace(met.fix.edits[0], file=HOSTILE, old=HOSTILE, new=HOSTILE)
    finding = replace(
        met,
        message=HOSTILE,
        location=Location(HOSTILE, 3, HOSTILE, column, source=HOSTILE),
        culprit=replace(met.culprit, name=HOSTILE, file=HOSTILE, source=HOSTILE),
        operands=tuple(replace(operand, name=HOSTILE) for operand in met.operands),
        reasons=(HOSTILE,),
        fix=replace(met.fix, summary=HOSTILE, edits=(edit,)),
    )
    report = Report(
        (finding, replace(finding, culprit=None)), "finding", HOSTILE, errors=(FileError(HOSTILE, HOSTILE),)
    )
    text = render(report)
    text.encode()
    assert not {"\x1b", "\u202e", "\r"} & set(text)


def test_many_simulated_devices_are_abridged():
    report = Report(script="train.py", simulated=tuple(f"cuda:{index}" for index in range(16)))
    assert report.to_text() == "No device fault found in train.py on simulated cuda:0 … cuda:15\n"
