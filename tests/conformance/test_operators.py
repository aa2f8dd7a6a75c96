"""op_db beside the CUDA build of torch 2.13, one tensor argument at a time elsewhere."""

import importlib.util

import pytest
import torch

pytestmark = [
    pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="recorded with torch 2.13"),
    pytest.mark.skipif(importlib.util.find_spec("expecttest") is None, reason="torch.testing's op_db needs expecttest"),
]


def _unexplained(answers, differences):
    return "\n".join(str(d) for d in differences if not answers.is_explained(d.key))


def test_some_operators_answer_as_cuda_does(answers, placements):
    assert not _unexplained(answers, placements.differences(placements.names()[::25]))


@pytest.mark.slow
def test_all_operators_answer_as_cuda_does(answers, placements):
    assert not _unexplained(answers, placements.differences(placements.names()))
