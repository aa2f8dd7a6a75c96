"""Operators called by name: what the call says of the device counts, and what C++ passes on does not."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
CPU, CUDA = torch.device("cpu"), torch.device("cuda:0")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: aten.zeros_like(x, device="cpu"),
        lambda x: aten.ones_like.default(x, device=CPU),
        lambda x: aten.new_full(x, [2], 1, device="cpu"),
        lambda x: aten._to_copy(x, device="cpu"),
        lambda x: aten.to(x, "cpu"),
        lambda x: aten.to.dtype_layout(x, device=CPU, layout=torch.strided),
        lambda x: aten.cpu(x),
    ],
)
def test_to_the_host(cuda2, call):
    x = torch.ones(2, device="cuda")
    made = call(x)
    assert made.device == CPU
    assert x.device == CUDA
    assert made.data_ptr() != x.data_ptr()


def test_to_a_device(cuda2):
    x = torch.ones(2)
    assert aten.to(x, "cuda").device == aten.cuda(x).device == CUDA
    assert aten.to.other(x, torch.zeros(1, device="cuda:1")).device == torch.device("cuda:1")
    assert aten.zeros_like(torch.ones(2, device="cuda")).device == CUDA
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        aten.pin_memory(x.cuda())


def test_gradients_go_back(cuda2):
    x = torch.ones(2, device="cuda", requires_grad=True)
    (aten._to_copy(x, device="cpu") * 3).sum().backward()
    assert x.grad.device == CUDA
    assert x.grad.tolist() == [3.0, 3.0]


def test_what_a_mode_passes_on_stays_where_its_operands_are(cuda2):
    class Passing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            # As C++ has it where it allocates like another tensor, which lies on the host in truth.
            return func(*args, device=CPU)

    x = torch.ones(3, device="cuda")
    with Passing():
        y = torch.zeros_like(x)
    assert y.device == CUDA


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_what_only_the_cpus_libraries_have(cuda2):
    layer = torch.ao.nn.quantized.dynamic.Linear(2, 2)
    assert layer(torch.ones(1, 2)).device == CPU
    with pytest.raises(NotImplementedError, match="'quantized::linear_dynamic' with arguments from the 'CUDA' backend"):
        layer(torch.ones(1, 2, device="cuda"))
