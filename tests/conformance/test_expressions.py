"""619 expressions beside the CUDA build of torch 2.13: raises or not, result devices, words."""

import fnmatch
import json
import os
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="recorded with torch 2.13")


@pytest.fixture(scope="session")
def answered_apart(answers):
    """The expressions that change the process, each answered in a process of its own."""
    command = [sys.executable, str(answers.HERE / "answers.py")]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return json.loads(subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout)


def _unexplained(answers, differences):
    return "\n".join(str(d) for d in differences if d is not None and not answers.is_explained(d.key))


def test_expressions_answer_as_cuda_does(answers):
    rows = [row for row in answers.expressions() if not answers.CHANGES_PROCESS.search(row.code)]
    assert len(rows) > 400
    assert not _unexplained(answers, [answers.difference(row, answers.answer(row.code)) for row in rows])


@pytest.mark.slow
def test_modules_losses_and_lists_answer_as_cuda_does(answers):
    table = answers.expressions(answers.MORE_EXPRESSIONS)
    rows = [row for row in table if not answers.CHANGES_PROCESS.search(row.code)]
    assert len(rows) > 600
    assert not _unexplained(answers, [answers.difference(row, answers.answer(row.code)) for row in rows])


@pytest.mark.slow
def test_expressions_that_change_the_process_answer_as_cuda_does(answers, answered_apart):
    tables = (*answers.expressions(), *answers.expressions(answers.MORE_EXPRESSIONS))
    rows = [row for row in tables if row.key in answered_apart]
    assert len(rows) > 60
    assert not _unexplained(answers, [answers.difference(row, answered_apart[row.key]) for row in rows])


@pytest.mark.slow
def test_no_explanation_is_stale(answers, placements, answered_apart):
    tables = (*answers.expressions(), *answers.expressions(answers.MORE_EXPRESSIONS))
    found = [answers.difference(row, answered_apart.get(row.key) or answers.answer(row.code)) for row in tables]
    keys = [d.key for d in [*found, *placements.differences(placements.names())] if d is not None]
    patterns = [pattern for pattern, why in answers.explained().items() if not why.startswith("at random")]
    assert not [p for p in patterns if p not in keys and not fnmatch.filter(keys, p)]
