import pytest
import torch
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype as group

from samedevice.faults import fault_of


def on(device, dtype=torch.float32):
    return torch.zeros(2, device=device, dtype=dtype)


def test_groups_are_apart_by_device_and_dtype(cuda2):
    tensors = [on("cuda"), on("cuda:1"), on("cpu"), on("cuda", torch.half), on("cuda")]
    found = group([tensors, [], [None] * 5], with_indices=True)
    # The order of C++'s hash map, as the real CUDA build showed it.
    assert [(str(device), dtype) for device, dtype in found] == [
        ("cuda:0", torch.half),
        ("cpu", torch.float32),
        ("cuda:1", torch.float32),
        ("cuda:0", torch.float32),
    ]
    lists, indices = found[torch.device("cuda:0"), torch.float32]
    assert indices == [0, 4]
    assert [len(part) for part in lists] == [2, 0, 2]


def test_state_on_the_cpu_passes_and_on_another_device_does_not(cuda2):
    assert group([[on("cuda")], [on("cpu")]])
    with pytest.raises(
        RuntimeError, match=r"^Tensors of the same index must be on the same device and the same dtype"
    ) as raised:
        group([[on("cuda")], [on("cuda:1")]])
    assert [operand.device for operand in fault_of(raised.value).operands] == ["cuda:0", "cuda:1"]
    with pytest.raises(RuntimeError, match="the 1-th Tensor is not"):
        group([[on("cuda"), None]])


def test_one_optimizer_for_parameters_on_two_devices(cuda2):
    layers = [torch.nn.Linear(2, 2).to(device) for device in ("cuda:0", "cuda:1", "cpu")]
    parameters = [p for layer in layers for p in layer.parameters()]
    optimizer = torch.optim.AdamW(parameters)
    for layer in layers:
        layer(torch.ones(1, 2, device=layer.weight.device)).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    assert norm.device == torch.device("cuda:0")
    optimizer.step()
    assert all(optimizer.state[p]["exp_avg"].device == p.device for p in parameters)


def test_a_number_for_a_list_is_read_from_the_host_whatever_its_shape(cuda2):
    x = torch.ones(3, device="cuda")
    assert torch._foreach_mul([x], torch.full((1,), 2.0))[0].tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        torch._foreach_mul([x], torch.ones(2))
    with pytest.raises(RuntimeError, match="expected to be 0 dim"):
        torch._foreach_mul([x.cpu()], torch.ones(1))
    with pytest.raises(RuntimeError, match=r"^scalar tensor is expected to be on cuda:0 but is on cuda:1"):
        torch._foreach_mul_([x], torch.ones((), device="cuda:1"))
