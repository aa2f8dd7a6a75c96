"""What becomes of each kind of tensor. Each entry of KINDS is a row of the table in docs/moving.md."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from samedevice import move_to_device

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage"),
]

KINDS = []
ROWS: list[tuple[str, str]] = []


def kind(name, becomes):
    """Add a test and its row: the kind of data, and what it becomes."""

    def add(test):
        KINDS.append(pytest.param(test, id=name))
        ROWS.append((name, becomes))
        return test

    return add


def is_moved(moved, original):
    return moved.device.type == "meta" and original.device.type == "cpu" and moved.shape == original.shape


def moved(tensor):
    assert move_to_device([tensor], "cpu")[0] is tensor
    new = move_to_device([tensor], "meta")[0]
    assert is_moved(new, tensor)
    assert type(new) is type(tensor)
    assert is_moved(move_to_device(tensor, "meta"), tensor)
    return new


@kind("plain tensor", "what `Tensor.to` returns; what Python code hung on it comes along")
def _():
    tensor = torch.ones(2, 3)
    tensor.note = "n"
    tensor.weight = torch.ones(1)
    tensor.model = nn.Linear(1, 1)
    new = moved(tensor)
    assert new.model is tensor.model
    assert new.note == "n"
    assert is_moved(new.weight, tensor.weight)


@kind("tensor that takes part in autograd", "what `Tensor.to` returns: gradients find their way back")
def _():
    leaf = torch.ones(2, requires_grad=True)
    new = moved(leaf)
    assert new.grad_fn.next_functions[0][0].variable is leaf
    computed = leaf * 2
    assert moved(computed).grad_fn.next_functions[0][0] is computed.grad_fn


@kind("nn.Parameter", "the same object, moved in place as `Module.to` does (on meta, as there, a new one)")
def _():
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    assert move_to_device({"p": parameter}, "cpu")["p"] is parameter
    new = move_to_device([parameter, parameter], "meta")
    expected = nn.Linear(1, 1).to("meta").weight
    assert new[0] is new[1]
    assert type(new[0]) is type(expected)
    assert new[0].is_leaf
    assert new[0].is_meta
    assert new[0].grad.is_meta


class Marked(torch.Tensor):
    pass


class Opaque(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


@kind("tensor subclass", "the same type, its attributes kept, tensors among them moved")
def _():
    for cls in (Marked, Opaque):
        tensor = torch.ones(2).as_subclass(cls)
        tensor.label = "cat"
        tensor.parts = [torch.ones(3), tensor]
        new = moved(tensor)
        assert new.label == "cat"
        assert is_moved(new.parts[0], tensor.parts[0])
        assert new.parts[1] is new


@kind("tv_tensors (torchvision)", "the same type with its metadata")
def _():
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    boxes = tv_tensors.BoundingBoxes(torch.ones(1, 4), format="XYXY", canvas_size=(8, 8))
    new = moved(boxes)
    assert (new.format, new.canvas_size) == (boxes.format, boxes.canvas_size)


@kind("PackedSequence", "data and orders moved, `batch_sizes` stays on the CPU as it must")
def _():
    packed = pack_sequence([torch.ones(2, 1), torch.ones(3, 1)], enforce_sorted=False)
    assert move_to_device({"x": packed}, "cpu")["x"] is packed
    new = move_to_device({"x": packed}, "meta")["x"]
    assert type(new) is type(packed)
    assert is_moved(new.data, packed.data)
    assert is_moved(new.sorted_indices, packed.sorted_indices)
    assert new.batch_sizes is packed.batch_sizes
    assert move_to_device(pack_sequence([torch.ones(2, 1)]), "meta").unsorted_indices is None


@kind("sparse COO, CSR, CSC, BSR", "the same layout")
def _():
    dense = torch.eye(4)
    for tensor in (dense.to_sparse(), dense.to_sparse_csr(), dense.to_sparse_csc(), dense.to_sparse_bsr((2, 2))):
        new = moved(tensor)
        assert new.layout == tensor.layout
        twice = move_to_device([tensor, tensor], "meta")
        assert twice[0] is twice[1]


@kind("nested tensor (jagged)", "the same layout")
def _():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    assert move_to_device([nested], "cpu")[0] is nested
    new = move_to_device([nested], "meta")[0]
    assert type(new) is type(nested)
    assert new.is_meta
    assert new.layout is torch.jagged


@kind("nested tensor (strided), quantized", "what `Tensor.to` returns; torch cannot move these to meta")
def _():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    quantized = torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8)
    for tensor in (nested, quantized):
        assert move_to_device([tensor, torch.ones(1)], "cpu")[0] is tensor


@kind("channels_last", "the same memory format")
def _():
    tensor = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert moved(tensor).stride() == tensor.stride()


@kind("conjugated, negated", "what `Tensor.to` returns")
def _():
    tensor = torch.ones(3, dtype=torch.complex64)
    assert moved(tensor.conj()).dtype is torch.complex64
    assert moved(torch.ones(3, dtype=torch.complex64).conj().imag).dtype is torch.float32


@kind("tensors on several devices", "all on the one")
def _():
    data = {"a": torch.ones(2), "b": torch.ones(2, device="meta"), "c": torch.ones(1, device="meta").expand(2)}
    new = move_to_device(data, "meta")
    assert new["b"] is data["b"]
    assert new["c"] is data["c"]
    assert is_moved(new["a"], data["a"])


@kind("tensor that is there already", "the very same object")
def _():
    tensor = torch.ones(2)
    assert move_to_device(tensor, "cpu") is tensor


@kind("view of a big tensor", "its own part alone is copied")
def _():
    view = torch.ones(1000, 2)[5:7]
    assert moved(view).untyped_storage().nbytes() == 16


@kind("views that share memory", "views of one copy again (see below)")
def _():
    x = torch.arange(12.0).view(3, 4)
    new = move_to_device([x[0], x[1], x], "meta")
    assert len({view.untyped_storage()._cdata for view in new}) == 1


@kind("expanded tensor", "expanded again, its memory as small as before")
def _():
    tensor = torch.ones(1).expand(1000)
    new = moved(tensor)
    assert new.stride() == (0,)
    assert new.untyped_storage().nbytes() == 4


@pytest.mark.parametrize("test", KINDS)
def test_kind(test):
    test()


def test_the_documentation_says_the_same(documented_rows):
    assert documented_rows("Tensors") == ROWS
