"""Tensors on the meta device beside simulated ones."""

import pytest
import torch
from torch import nn


def test_no_values_to_copy(cuda2):
    for move in (lambda x: x.to("cuda"), lambda x: x.cuda(1), lambda x: x.to(torch.ones(1, device="cuda"))):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            move(torch.empty(2, device="meta"))


def test_modules_are_made_on_meta_and_emptied_onto_a_device(cuda2):
    module = nn.Sequential(nn.Linear(2, 2, device="meta"), nn.BatchNorm1d(2, device="meta"))
    assert {value.device.type for value in module.state_dict().values()} == {"meta"}
    module.to_empty(device="cuda")
    assert {str(value.device) for value in module.state_dict().values()} == {"cuda:0"}
    with pytest.raises(NotImplementedError, match=r"torch\.nn\.Module\.to_empty"):
        nn.Linear(2, 2, device="meta").to("cuda")


@pytest.mark.parametrize(
    ("compute", "device", "expected"),
    [
        (lambda x, y: x + y, "meta", "cuda:0"),
        (lambda x, y: y * x, "cuda:0", "meta"),
        (lambda x, y: torch.cat([x, y]), "meta", "cuda:0"),
        (lambda x, y: nn.functional.layer_norm(x, (2,), y), "meta", "cuda:0"),
        (lambda x, y: nn.functional.batch_norm(x[None].expand(2, 2), y, y), "meta", "cuda:0"),
        (lambda x, y: nn.functional.linear(x[None], y.expand(2, 2), y), "meta", "cuda:0"),
    ],
)
def test_mixes_are_refused_in_the_words_of_meta_kernels(cuda2, compute, device, expected):
    x, y = torch.ones(2, device="cuda"), torch.empty(2, device="meta")
    with pytest.raises(RuntimeError, match=f"Tensor on device {device} is not on the expected device {expected}!"):
        compute(x, y)


def test_kernels_that_compare_nothing_follow_their_first_operand(cuda2):
    x, y = torch.ones(2, 2, device="cuda"), torch.empty(2, 2, device="meta")
    assert (x @ y).device == torch.device("cuda:0")
    assert (y @ x).device == torch.device("meta")
    assert nn.functional.embedding(x[0].long(), y).device == torch.device("meta")
