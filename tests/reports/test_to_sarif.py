"""The log validates against the parts of the SARIF 2.1.0 schema that it uses, written down here from the standard."""

import json
from dataclasses import replace

from jsonschema import validate

from samedevice.findings import Edit, Fix, Report
from samedevice.reports import to_sarif

MESSAGE = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
LINE = {"type": "integer", "minimum": 1}
REGION = {
    "type": "object",
    "properties": {
        "startLine": LINE,
        "startColumn": LINE,
        "endLine": LINE,
        "endColumn": LINE,
        "snippet": MESSAGE,
    },
    "required": ["startLine"],
    "additionalProperties": False,
}
ARTIFACT = {
    "type": "object",
    "properties": {"uri": {"type": "string", "format": "uri-reference", "pattern": r"^[^ \\]*$"}},
    "required": ["uri"],
    "additionalProperties": False,
}
LOCATION = {
    "type": "object",
    "properties": {
        "message": MESSAGE,
        "physicalLocation": {
            "type": "object",
            "properties": {"artifactLocation": ARTIFACT, "region": REGION},
            "required": ["artifactLocation"],
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
FIX = {
    "type": "object",
    "properties": {
        "description": MESSAGE,
        "artifactChanges": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "artifactLocation": ARTIFACT,
                    "replacements": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "properties": {"deletedRegion": REGION, "insertedContent": MESSAGE},
                            "required": ["deletedRegion"],
                            "additionalProperties": False,
                        },
                    },
                },
                "required": ["artifactLocation", "replacements"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["artifactChanges"],
    "additionalProperties": False,
}
RESULT = {
    "type": "object",
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": MESSAGE,
        "locations": {"type": "array", "items": LOCATION},
        "relatedLocations": {"type": "array", "items": LOCATION},
        "fixes": {"type": "array", "items": FIX},
    },
    "required": ["message"],
    "additionalProperties": False,
}
RULE = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "shortDescription": MESSAGE,
        "fullDescription": MESSAGE,
        "help": MESSAGE,
    },
    "required": ["id"],
    "additionalProperties": False,
}
NOTIFICATION = {
    "type": "object",
    "properties": {"level": {"enum": ["error"]}, "message": MESSAGE, "locations": {"items": LOCATION}},
    "required": ["message"],
    "additionalProperties": False,
}
SCHEMA = {
    "type": "object",
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "tool": {
                        "type": "object",
                        "properties": {
                            "driver": {
                                "type": "object",
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "rules": {"type": "array", "items": RULE, "uniqueItems": True},
                                },
                                "required": ["name"],
                                "additionalProperties": False,
                            }
                        },
                        "required": ["driver"],
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "invocations": {
                        "items": {
                            "type": "object",
                            "properties": {
                                "executionSuccessful": {"type": "boolean"},
                                "toolExecutionNotifications": {"items": NOTIFICATION},
                            },
                            "required": ["executionSuccessful"],
                            "additionalProperties": False,
                        }
                    },
                    "results": {"type": "array", "items": RESULT},
                },
                "required": ["tool"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["version", "runs"],
    "additionalProperties": False,
}


def log(report):
    data = json.loads(to_sarif(report))
    validate(data, SCHEMA)
    return data["runs"][0]


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
