"""Mends: each edit is applied to its script, which then runs to its end on the same machine."""

import importlib.util
from pathlib import Path

import pytest


def _cases():
    here = Path(__file__).parent
    for name in ("test_causes", "test_causes_more"):
        specification = importlib.util.spec_from_file_location(f"mending_{name}", here / f"{name}.py")
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        yield from ((case, script) for case, (_, script) in module.CASES.items())


CASES = dict(_cases())
# No edit: what to change is not on one line, or a person has to choose.
SENTENCE_ONLY = {
    "module-created-in-forward",
}


def apply(text, fix):
    lines = text.split("\n")
    for edit in sorted(fix.edits, key=lambda edit: -edit.line):
        assert "\n".join(lines[edit.line - 1 : edit.end_line]) == edit.old
        lines[edit.line - 1 : edit.end_line] = edit.new.split("\n") if edit.new else []
    return "\n".join(lines)


@pytest.mark.parametrize("case", [case for case in CASES if case not in SENTENCE_ONLY])
def test_the_mended_script_runs(case, run_script):
    ran = run_script(CASES[case])
    assert ran.finding.fix.edits, ran.finding.fix
    for _ in range(3):  # a second tensor of the same kind shows when the first is mended
        ran = run_script(apply(ran.text, ran.finding.fix), preamble=False)
        if ran.error is None:
            break
    assert ran.error is None, ran.text
    assert ran.silent == ()


@pytest.mark.parametrize("case", sorted(SENTENCE_ONLY))
def test_without_an_edit_there_is_a_sentence(case, run_script):
    fix = run_script(CASES[case]).finding.fix
    assert fix.summary
    assert fix.edits == ()
