"""Each example is run on simulated devices: the wrong one meets its cause at the marked line, the others meet nothing.

A claimed bug is proved by running it. The simulated examples share this process; torch is imported once.
"""

import pytest

from samedevice.causes.catalogue import all_causes
from samedevice.running import RunOptions, run

RUNNABLE = [cause for cause in all_causes() if cause.not_run is None]


def named(kind, pick):
    return [
        pytest.param(cause, item, id=f"{cause.slug}-{kind}-{number}")
        for cause in RUNNABLE
        for number, item in enumerate(pick(cause), 1)
    ]


@pytest.fixture
def run_script(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    # A name of its own: `linecache` and the explanations keep what a file of that name once held.
    name = f"{request.node.name.split('[')[-1].rstrip(']').replace('-', '_')}.py"

    def run_it(text, devices):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return run(RunOptions(name, simulate=f"cuda:{devices}"))

    return run_it


@pytest.mark.parametrize(("cause", "example"), named("wrong", lambda cause: cause.examples))
def test_wrong_meets_its_cause_at_the_marked_line(run_script, reads_well, cause, example):
    result = run_script(example.wrong_script, example.devices)
    assert (result.outcome, result.status) == ("finding", 1)
    assert [(finding.code, finding.cause) for finding in result.report.findings] == [(cause.code, cause.slug)]
    (finding,) = result.report.findings
    lines = {finding.location.line, finding.culprit.line if finding.culprit else None}
    assert lines & set(example.marked_lines)
    reads_well(result.report)


@pytest.mark.parametrize(("cause", "example"), named("right", lambda cause: cause.examples))
def test_right_meets_nothing(run_script, capsys, cause, example):
    result = run_script(example.right, example.devices)
    assert (result.outcome, result.status, result.report.findings) == ("ok", 0, ()), capsys.readouterr().err


@pytest.mark.parametrize(("cause", "script"), named("clean", lambda cause: cause.clean))
def test_clean_meets_nothing(run_script, capsys, cause, script):
    result = run_script(script, 2)
    assert (result.outcome, result.status, result.report.findings) == ("ok", 0, ()), capsys.readouterr().err
