"""Tensor subclasses that wrap others: on the device that they name, with kernels and gradients."""

import io

import pytest
import torch
from torch.utils import _pytree as pytree


class Wrapper(torch.Tensor):
    """Says where it is when it is made, and computes on what it wraps."""

    @staticmethod
    def __new__(cls, inner):
        keywords = {"dtype": inner.dtype, "device": inner.device, "requires_grad": inner.requires_grad}
        made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), strides=inner.stride(), **keywords)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(Wrapper, lambda tensor: tensor.inner, (args, kwargs or {}))
        return pytree.tree_map_only(torch.Tensor, Wrapper, func(*args, **kwargs))


def test_a_wrapper_is_where_it_says(cuda2):
    wrapper = Wrapper(torch.ones(2, 2, device="cuda:1"))
    assert (wrapper.device, wrapper.is_cuda, wrapper.get_device()) == (torch.device("cuda:1"), True, 1)
    assert (wrapper + 1).inner.device == torch.device("cuda:1")
    moved = wrapper.to("cuda:0")
    assert {moved.device, moved.inner.device} == {torch.device("cuda:0")}
    assert {moved.cpu().device, moved.cpu().inner.device} == {torch.device("cpu")}
    assert Wrapper(torch.ones(2)).device.type == "cpu"
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        wrapper + torch.ones(2, 2)


def test_gradients_reach_a_wrapper(cuda2):
    wrapper = Wrapper(torch.ones(2, 2, device="cuda")).requires_grad_()
    (wrapper * 3).sum().backward()
    assert wrapper.grad.inner.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert wrapper.grad.device == torch.device("cuda:0")


def test_a_wrapper_of_no_device_stays_as_pytorch_makes_it(cuda2):
    made = torch.Tensor._make_wrapper_subclass(Wrapper, (2,), device="meta")
    assert made.device.type == "meta"
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.Tensor._make_wrapper_subclass(Wrapper, (2,), device="cuda:7")


@pytest.mark.filterwarnings("ignore")
def test_nested_tensors_train_on_a_device(cuda2):
    values = [torch.randn(2, 4), torch.randn(3, 4)]
    layer = torch.nn.Linear(4, 4).cuda()
    nested = torch.nested.nested_tensor(values, layout=torch.jagged, device="cuda")
    assert {nested.device, nested.values().device, nested.offsets().device} == {torch.device("cuda:0")}
    output = layer(nested)
    assert output.device == torch.device("cuda:0")
    torch.nested.to_padded_tensor(output, 0.0).square().sum().backward()
    expected = torch.nn.Linear(4, 4)
    expected.load_state_dict(layer.state_dict())
    expected(torch.cat(values)).square().sum().backward()
    assert torch.allclose(layer.weight.grad.cpu(), expected.weight.grad)
    with pytest.raises(RuntimeError, match=r"mat1 is on cpu|cpu"):
        layer(nested.cpu())
    file = io.BytesIO()
    torch.save(nested, file)
    file.seek(0)
    assert torch.load(file, weights_only=False).device == torch.device("cuda:0")
