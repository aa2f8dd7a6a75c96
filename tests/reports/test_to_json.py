"""Every key of the contract is there, with the types that it says."""

import json
from dataclasses import replace

import pytest
from jsonschema import validate

import samedevice
from samedevice.findings import Placement, Report, Transfer
from samedevice.reports import to_json

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
MAYBE_TEXT = {"type": ["string", "null"]}
SHAPE = {"type": ["array", "null"], "items": NUMBER}


def record(**keys):
    return {"type": "object", "properties": keys, "required": list(keys)}


def maybe(schema):
    return {"anyOf": [schema, {"type": "null"}]}


EDIT = record(file=TEXT, line=NUMBER, end_line=NUMBER, old=TEXT, new=TEXT)
FIX = record(summary=TEXT, safe={"type": "boolean"}, edits={"type": "array", "items": EDIT})
TOOL = record(name={"const": "samedevice"}, version={"const": samedevice.__version__})
RUN = record(
    schema={"const": 1},
    tool=TOOL,
    script=TEXT,
    outcome={"enum": ["ok", "finding", "error"]},
    simulated={"type": ["array", "null"], "items": TEXT},
    findings={
        "type": "array",
        "items": record(
            code={"type": "string", "pattern": r"^SD\d{3}$"},
            cause=TEXT,
            severity={"enum": ["error", "warning"]},
            raised=maybe(record(type=TEXT, message=TEXT)),
            operation=MAYBE_TEXT,
            location=record(file=TEXT, line=NUMBER, function=MAYBE_TEXT),
            culprit=maybe(
                record(name=TEXT, file=MAYBE_TEXT, line={}, device=MAYBE_TEXT, shape=SHAPE, dtype=MAYBE_TEXT)
            ),
            expected_device=MAYBE_TEXT,
            operands={"type": "array", "items": record(name=TEXT, device=TEXT, shape=SHAPE, dtype=MAYBE_TEXT)},
            fix=maybe(FIX),
        ),
    },
)
LINT = record(
    schema={"const": 1},
    tool=TOOL,
    findings={
        "type": "array",
        "items": record(
            code=TEXT,
            cause=TEXT,
            message=TEXT,
            location=record(file=TEXT, line=NUMBER, column=NUMBER, end_line=NUMBER, end_column=NUMBER),
            fix=maybe(FIX),
        ),
    },
    errors={"type": "array", "items": record(file=TEXT, message=TEXT)},
)


def test_run_report_keeps_the_contract(run_report):
    data = json.loads(to_json(run_report))
    validate(data, RUN)
    assert data["script"] == "train.py"
    assert data["simulated"] == ["cuda:0"]
    (finding,) = data["findings"]
    assert finding["culprit"]["shape"] == [1, 512, 64]
    assert finding["raised"]["message"] == "Expected all tensors to be on the same device, but found <two>"
    assert [operand["name"] for operand in finding["operands"]] == ["x", "self.pe[:, : x.size(1)]"]


def test_lint_report_keeps_the_contract(lint_report):
    data = json.loads(to_json(lint_report))
    validate(data, LINT)
    assert "script" not in data
    assert data["errors"] == [{"file": "broken.py", "message": "line 3: invalid syntax"}]


def test_what_is_unknown_is_null(run_report, met):
    bare = replace(met, raised=None, operation=None, culprit=None, operands=(), fix=None, expected_device=None)
    data = json.loads(to_json(replace(run_report, findings=(bare,), simulated=None)))
    validate(data, RUN)
    assert data["simulated"] is None
    assert data["findings"][0]["fix"] is None


@pytest.mark.parametrize("key", ["placements", "transfers", "notes"])
def test_extra_parts_are_there_only_when_filled(key):
    filled = {
        "placements": (Placement("model", "0.weight", "cpu", (2, 3)),),
        "transfers": (Transfer("train.py", 3, "cpu", "cuda:0", 2, 128),),
        "notes": ("left alone on purpose",),
    }
    assert key not in json.loads(to_json(Report()))
    assert len(json.loads(to_json(Report(**{key: filled[key]})))[key]) == 1


def test_survives_any_console_encoding(run_report, met):
    text = to_json(replace(run_report, findings=(replace(met, message="Größe \ud800"),)))
    assert text.isascii()
    assert json.loads(text)["findings"][0]["message"] == "Größe \ud800"
