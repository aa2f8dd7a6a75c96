"""Capsules say where their tensor is."""

import inspect

import numpy as np
import pytest
import torch
import torch.utils.dlpack

EXPORTS = {
    "to_dlpack": lambda tensor: torch.utils.dlpack.to_dlpack(tensor),
    "__dlpack__": lambda tensor: tensor.__dlpack__(),
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_a_capsule_keeps_the_device_and_the_memory(cuda2, export):
    x = torch.zeros(3, device="cuda")
    y = torch.utils.dlpack.from_dlpack(export(x))
    y.fill_(2)
    assert y.device == torch.device("cuda:0")
    assert x.sum() == 6
    assert torch.from_dlpack(export(torch.zeros(3))).device.type == "cpu"


def test_other_devices(cuda2):
    x = torch.zeros(3, device="cuda:1")
    assert torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)).device == torch.device("cuda:1")
    if "dl_device" in inspect.signature(torch.Tensor.__dlpack__).parameters:
        with pytest.raises(BufferError, match="different CUDA device index"):
            torch.from_dlpack(x)
    else:
        assert torch.from_dlpack(x).device == torch.device("cuda:1")


def test_numpy_refuses_what_is_on_a_device(cuda2):
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(torch.zeros(3, device="cuda"))
    assert np.from_dlpack(torch.zeros(3)).sum() == 0
