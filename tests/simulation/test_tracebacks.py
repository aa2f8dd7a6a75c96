"""What PyTorch prints of errors elsewhere has the frames that a real machine has."""

import pytest
import torch
from torch import nn

import samedevice

_PACKAGE = samedevice.__file__.rpartition("/")[0]


class _Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.shift = torch.zeros(2)

    def forward(self, x):
        return self.linear(x) + self.shift


def test_replicas_show_the_user_s_frames_alone(cuda2):
    with pytest.raises(RuntimeError) as caught:
        nn.DataParallel(_Shifted().cuda())(torch.zeros(4, 2))
    text = str(caught.value)
    assert _PACKAGE not in text
    assert "in forward" in text
    assert text.rstrip().endswith("found at least two devices, cuda:0 and cpu!")


def _collate(batch):
    return torch.zeros(2) + torch.zeros(3)


def test_workers_too(cuda2):
    loader = torch.utils.data.DataLoader([1, 2], num_workers=1, collate_fn=_collate)
    with pytest.raises(RuntimeError, match="in _collate") as caught:
        list(loader)
    assert _PACKAGE not in str(caught.value)
