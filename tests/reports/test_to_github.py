from dataclasses import replace

from samedevice.findings import Report
from samedevice.reports import to_github


def test_one_command_a_finding(lint_report):
    assert to_github(lint_report) == (
        "::warning title=SD105 result-discarded,file=a folder/train.py,line=4,endLine=4,col=5,endColumn=17"
        "::the result of x.to(device) is dropped%0AMend: x = x.to(device)\n"
        "::error file=broken.py::line 3: invalid syntax\n"
    )


def test_text_cannot_start_a_command_of_its_own(lint_report, seen):
    hostile = replace(seen, message="100%\n::set-output name=x::y", location=replace(seen.location, file="a,b:c.py"))
    first, *rest = to_github(replace(lint_report, findings=(hostile,), errors=())).splitlines()
    assert rest == []
    assert "file=a%2Cb%3Ac.py" in first
    assert "100%25%0A::set-output" in first


def test_no_columns_over_several_lines(lint_report, seen):
    long = replace(seen, location=replace(seen.location, end_line=7))
    assert "col=" not in to_github(replace(lint_report, findings=(long,)))


def test_nothing_found():
    assert to_github(Report()) == ""


def test_a_place_in_a_notebook_names_the_cell_and_no_line_of_the_file(lint_report, seen):
    in_cell = replace(seen, fix=None, location=replace(seen.location, file="a.ipynb", line=2, cell=3))
    report = replace(lint_report, findings=(in_cell,), errors=())
    assert to_github(report) == (
        "::warning title=SD105 result-discarded,file=a.ipynb::cell 3, line 2: the result of x.to(device) is dropped\n"
    )
