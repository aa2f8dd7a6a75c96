from dataclasses import replace

import pytest

from samedevice.findings import Edit, FileError, Fix, Placement, Report
from samedevice.reports import to_text


def test_a_fault_reads_from_what_happened_to_how_to_mend_it(run_report):
    assert to_text(run_report) == (
        """\
add: self.pe is on cpu, x is on cuda:0
  at train.py:31 in forward: return x + self.pe[:, : x.size(1)]
  self.pe: cpu, float32[1, 512, 64]; from train.py:12: self.pe = pe
  self.pe is a plain attribute of model, so model.to() passed it by.
Mend: train.py:12
  -         self.pe = pe
  +         self.register_buffer("pe", pe, persistent=False)
Cause SD103 plain-attribute; `samedevice causes SD103` tells more

1 device fault in train.py on simulated cuda:0
"""
    )


def test_a_mend_that_its_edit_does_not_spell_out_is_said(run_report):
    (finding,) = run_report.findings
    told = replace(finding, fix=replace(finding.fix, summary="make it a buffer"))
    assert "Mend: make it a buffer\n  train.py:12\n  -  " in to_text(replace(run_report, findings=(told,)))


def test_lines_that_an_edit_keeps_are_neither_taken_away_nor_added(run_report):
    (finding,) = run_report.findings
    edit = Edit("train.py", 31, 31, "    y = model(x)", "    x = x.to(device)\n    y = model(x)")
    told = replace(finding, fix=Fix("x = x.to(device)", (edit,)))
    assert ("Mend: train.py:31\n  +     x = x.to(device)\n        y = model(x)\n") in to_text(
        replace(run_report, findings=(told,))
    )


def test_a_finding_prints_as_its_report_does(run_report):
    (finding,) = run_report.findings
    assert str(finding) == to_text(Report((finding,), "finding"))


def test_a_fault_seen_in_source_takes_a_line_that_editors_follow(lint_report):
    assert to_text(lint_report) == (
        """\
a folder/train.py:4:5: SD105 the result of x.to(device) is dropped
    Mend: x = x.to(device)
broken.py: line 3: invalid syntax
1 device fault
"""
    )


def test_an_unsafe_fix_is_said_to_be_one(lint_report, seen):
    unsafe = replace(seen, fix=replace(seen.fix, safe=False))
    assert "look twice" in to_text(replace(lint_report, findings=(unsafe,)))


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (Report(), "No device fault found\n"),
        (Report(script="a.py", simulated=("cuda:0",)), "No device fault found in a.py on simulated cuda:0\n"),
        (
            Report(outcome="error", script="a.py"),
            "a.py failed for a reason of its own; no device fault was found\n",
        ),
        (
            Report(errors=(FileError("a.py", "no such file"),)),
            "a.py: no such file\n1 file could not be read; no device fault in the others\n",
        ),
    ],
)
def test_nothing_found(report, text):
    assert to_text(report) == text


def test_where_things_are_is_counted():
    placements = (
        Placement("model", "0.weight", "cuda:0", kind="parameter"),
        Placement("model", "0.bias", "cuda:0", kind="parameter"),
        Placement("batch", '["image"]', "cpu", kind="input"),
    )
    text = to_text(Report(placements=placements))
    assert "model: 2 parameters on cuda:0\nbatch: 1 input on cpu\n" in text


def test_the_common_case_fits_a_screen(run_report):
    lines = to_text(run_report).splitlines()
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 100


def test_long_code_keeps_to_the_width_and_long_edits_are_cut(run_report, met):
    edit = Edit("train.py", 1, 30, "\n".join("old" * 2 for _ in range(30)), "new")
    long = replace(
        met,
        location=replace(met.location, source="x = " + " + ".join(["some_tensor"] * 20)),
        reasons=tuple("a reason that goes on and on " * 5 for _ in range(6)),
        fix=Fix("mend " * 40, (edit,)),
    )
    lines = to_text(replace(run_report, findings=(long,))).splitlines()
    assert max(map(len, lines)) <= 100
    assert "  … and 24 more lines" in lines
    assert len(lines) <= 30


def test_colours_only_when_asked_for(run_report):
    coloured = to_text(run_report, colours=True)
    assert "\x1b[" in coloured
    assert "\x1b" not in to_text(run_report)


def test_source_text_cannot_steer_the_terminal(run_report, met):
    hostile = replace(met, location=replace(met.location, source="x = '\x1b[2J\x07'"))
    text = to_text(replace(run_report, findings=(hostile,)))
    assert "\x1b" not in text
    assert "\\x1b[2J\\x07" in text


def test_a_report_prints_itself(run_report):
    assert str(run_report) == to_text(run_report)


def test_without_a_culprit_it_says_what_is_where(run_report, met):
    unknown = replace(met, culprit=None, reasons=(), fix=None)
    assert "  x is on cuda:0; self.pe[:, : x.size(1)] is on cpu\n" in to_text(replace(run_report, findings=(unknown,)))


def test_what_is_no_fault_is_counted_apart(met):
    smell = replace(met, code="SD301", cause="cuda-call")
    assert "1 device fault, 1 other note" in to_text(Report((met, smell), "finding"))
    assert "No device fault found, 2 other notes" in to_text(Report((smell, smell), "finding"))
