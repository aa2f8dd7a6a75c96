"""The log validates against the schema that OASIS publishes with the standard.

Source of data/sarif-schema-2.1.0.json: https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/, unchanged.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft4Validator, ValidationError

from samedevice.causes.catalogue import all_causes, all_smells
from samedevice.config import Config
from samedevice.findings import Edit, Finding, Fix, Location, Report
from samedevice.linting.lint import lint
from samedevice.reports import to_sarif

SCHEMA = json.loads((Path(__file__).parent / "data" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = Draft4Validator(SCHEMA, format_checker=Draft4Validator.FORMAT_CHECKER)


def log(report):
    data = json.loads(to_sarif(report))
    VALIDATOR.validate(data)
    return data["runs"][0]


def test_the_schema_refuses_what_is_no_log():
    for wrong in ({}, {"version": "2.1.0", "runs": [{}]}, {"version": "2.0", "runs": []}):
        with pytest.raises(ValidationError):
            VALIDATOR.validate(wrong)


def test_every_example_of_the_catalogue(tmp_path):
    for cause in (*all_causes(), *all_smells()):
        for number, example in enumerate(cause.examples):
            (tmp_path / f"é {cause.module} {number}.py").write_text(example.wrong_script, encoding="utf-8")
    (tmp_path / "broken.py").write_text("import torch\n(", encoding="utf-8")
    run = log(lint([tmp_path], config=Config(select=("ALL",))))
    assert len(run["results"]) > 30
    assert len(run["tool"]["driver"]["rules"]) > 30


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Location("a.py", 2, None, 9, 2, 18, "y = x.numpy()", source_column=5), "x.numpy()"),
        (Location("a.py", 2, None, 9, 3, 4, "y = (x", source_column=5), None),
        (Location("a.py", 2, source="y = x.numpy()"), "y = x.numpy()"),
    ],
)
def test_a_snippet_is_the_text_of_its_region(place, text):
    (result,) = log(Report((Finding("SD112", "numpy-on-cuda", "m", place),), "finding"))["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region.get("snippet") == (None if text is None else {"text": text})


def test_a_place_in_a_notebook_is_a_cell_and_no_line_of_the_file():
    edit = Edit("a.ipynb", 2, 2, "x", "y", cell=3)
    place = Location("a.ipynb", 2, None, 5, 2, 9, "x", 3)
    finding = Finding("SD112", "numpy-on-cuda", "m", place, fix=Fix("y", (edit,)))
    (result,) = log(Report((finding,), "finding"))["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": "a.ipynb"}}
    assert location["logicalLocations"] == [{"fullyQualifiedName": "cell 3, line 2", "kind": "cell"}]
    assert result["message"]["text"] == "cell 3, line 2: m"
    assert "fixes" not in result


def test_a_run(run_report):
    run = log(run_report)
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "SD103"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 31
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 12


def test_files_that_could_not_be_read_are_notifications(lint_report):
    run = log(lint_report)
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20folder/train.py"


def test_a_fix_replaces_whole_lines(run_report):
    (change,) = log(run_report)["results"][0]["fixes"][0]["artifactChanges"]
    (replacement,) = change["replacements"]
    old = "        self.pe = pe"
    assert replacement["deletedRegion"] == {"startLine": 12, "startColumn": 1, "endLine": 12, "endColumn": len(old) + 1}
    assert replacement["insertedContent"]["text"] == '        self.register_buffer("pe", pe, persistent=False)'


def test_lines_that_go_take_their_line_break_with_them(run_report, met):
    gone = replace(met, fix=Fix("drop it", (Edit("/abs/train.py", 3, 4, "a\nb", ""),)))
    (change,) = log(replace(run_report, findings=(gone,)))["results"][0]["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "file:///abs/train.py"
    (replacement,) = change["replacements"]
    assert replacement == {"deletedRegion": {"startLine": 3, "startColumn": 1, "endLine": 5, "endColumn": 1}}


def test_nothing_found():
    assert log(Report())["results"] == []


def test_reasons_are_sentences_of_their_own(run_report, met):
    told = replace(met, message="x is on cpu", reasons=("it was made there.", "nothing moved it"))
    text = log(replace(run_report, findings=(told,)))["results"][0]["message"]["text"]
    assert text.endswith("x is on cpu. it was made there. nothing moved it.")
