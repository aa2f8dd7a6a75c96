"""Each example is linted: the wrong one is flagged at the marked lines and nowhere else, the others are silent."""

import pytest

from samedevice.causes.catalogue import all_causes
from samedevice.linting.lint import lint_source

SEEN = [cause for cause in all_causes() if cause.not_static is None]
WRONG = [
    pytest.param(cause, example, id=f"{cause.slug}-wrong-{number}")
    for cause in SEEN
    for number, example in enumerate(cause.examples, 1)
]
SILENT = [
    pytest.param(script, id=f"{cause.slug}-{kind}-{number}")
    for cause in all_causes()
    for kind, scripts in (("right", [example.right for example in cause.examples]), ("clean", cause.clean))
    for number, script in enumerate(scripts, 1)
]


def found(text):
    return [(finding.code, finding.location.line) for finding in lint_source(text, "example.py")]


def silenced(example, comment):
    lines = example.wrong_script.splitlines()
    for number in example.marked_lines:
        lines[number - 1] += f"  # {comment}"
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("cause", "example"), WRONG)
def test_wrong_is_flagged_at_the_marked_lines_and_nowhere_else(cause, example):
    assert found(example.wrong_script) == [(cause.code, line) for line in example.marked_lines]


@pytest.mark.parametrize(("cause", "example"), WRONG)
def test_what_is_found_is_said_in_both_languages(is_translated, cause, example):
    for finding in lint_source(example.wrong_script, "example.py"):
        is_translated(finding)


@pytest.mark.parametrize("script", SILENT)
def test_right_and_clean_are_silent(script):
    assert found(script) == []


@pytest.mark.parametrize(("cause", "example"), WRONG)
def test_both_comments_silence_it(cause, example):
    assert found(silenced(example, f"noqa: {cause.code}")) == []
    assert found(silenced(example, f"samedevice: ignore[{cause.code}]")) == []
    assert found(silenced(example, "noqa: SD999")) == found(example.wrong_script)


def test_a_cause_said_to_be_invisible_in_source_is():
    """Once the linter sees it, the reason in the cause's file has to go."""
    for cause in all_causes():
        for example in cause.examples if cause.not_static else ():
            assert cause.code not in {code for code, _ in found(example.wrong_script)}
