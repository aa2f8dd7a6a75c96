"""619 expressions beside the CUDA build of torch 2.13: raises or not, result devices, words."""

import json
import os
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="recorded with torch 2.13")


def _report(differences):
    return "\n".join(map(str, differences))


def test_expressions_answer_as_cuda_does(answers):
    rows = [row for row in answers.expressions() if not answers.CHANGES_PROCESS.search(row.code)]
    assert len(rows) > 400
    found = [answers.difference(row, answers.answer(row.code)) for row in rows]
    unexplained = [d for d in found if d is not None and not answers.is_explained(d.key)]
    assert not unexplained, _report(unexplained)


@pytest.mark.slow
def test_expressions_that_change_the_process_answer_as_cuda_does(answers):
    script = answers.HERE / "answers.py"
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env, check=True)
    given = json.loads(done.stdout)
    found = [answers.difference(row, given[row.key]) for row in answers.expressions() if row.key in given]
    assert len(found) > 100
    unexplained = [d for d in found if d is not None and not answers.is_explained(d.key)]
    assert not unexplained, _report(unexplained)


@pytest.mark.slow
def test_no_explanation_is_stale(answers, placements):
    script = answers.HERE / "answers.py"
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env, check=True)
    given = json.loads(done.stdout)
    found = [answers.difference(row, given.get(row.key) or answers.answer(row.code)) for row in answers.expressions()]
    keys = [d.key for d in found if d is not None] + [d.key for d in placements.differences(placements.names())]
    import fnmatch

    stale = [p for p in answers.explained() if p not in keys and not fnmatch.filter(keys, p)]
    assert not stale
