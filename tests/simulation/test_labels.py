import gc

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import samedevice
from samedevice.simulation.labels import device_of

CPU, CUDA, CUDA1 = torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1")
pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*quantize:UserWarning"),
]

KINDS = {
    "dense": lambda: torch.ones(2, 3),
    "scalar": lambda: torch.tensor(1.0),
    "empty": lambda: torch.ones(0, 3),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "complex": lambda: torch.ones(2, dtype=torch.cfloat),
    "boolean": lambda: torch.ones(2, dtype=torch.bool),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "empty sparse": lambda: torch.zeros(0, 2).to_sparse(),
    "compressed": lambda: torch.eye(3).to_sparse_csr(),
    "compressed columns": lambda: torch.eye(3).to_sparse_csc(),
    "blocks": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "conjugate": lambda: torch.ones(2, dtype=torch.cfloat).conj(),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_every_kind_of_tensor_moves_there_and_back(cuda2, make):
    here = make()
    there = here.to("cuda:1")
    assert here.device == CPU
    assert there.device == device_of(there) == CUDA1
    assert there.is_cuda
    assert there.get_device() == 1
    assert there.to("cuda").device == CUDA
    assert there.cpu().device == CPU
    assert there.clone().device == CUDA1


VIEWS = {
    "view": lambda x: x.view(3, 2),
    "slice": lambda x: x[:, 1:],
    "transposed": lambda x: x.t(),
    "expanded": lambda x: x[None].expand(4, 2, 3),
    "detached": lambda x: x.detach(),
    "data": lambda x: x.data,
    "strided": lambda x: x.as_strided((2,), (1,)),
    "reinterpreted": lambda x: x.view(torch.int32),
    "unbound": lambda x: x.unbind()[0],
    "chunk": lambda x: x.chunk(2)[1],
    "parameter": torch.nn.Parameter,
    "subclass": lambda x: x.as_subclass(type("Sub", (torch.Tensor,), {})),
    "real": lambda x: torch.view_as_complex(x.reshape(3, 2)).real,
    "set": lambda x: torch.zeros(0, device="cuda:1").set_(x),
    "storage": lambda x: torch.zeros(0, device="cuda:1").set_(x.untyped_storage()),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_what_shares_a_storage_is_on_its_device(cuda2, view):
    assert view(torch.ones(2, 3, device="cuda:1")).device == CUDA1


def test_what_autograd_saved_is_on_its_device(cuda2):
    x = torch.ones(2, device="cuda:1", requires_grad=True)
    y = x * x
    assert y.grad_fn._saved_self.device == CUDA1


def test_it_follows_data_and_set(cuda2):
    x, parameter = torch.ones(2, device="cuda"), torch.nn.Parameter(torch.ones(2))
    parameter.data = x
    assert parameter.device == CUDA
    parameter.data = torch.ones(2)
    assert parameter.device == CPU
    x.resize_(1000)
    assert x.device == CUDA


def test_inside_functorch(cuda2):
    seen = []

    def function(x):
        seen.append((x.device, x.cuda().device, (x * 2).device))
        return (x * 2).sum()

    x = torch.ones(3, 2, device="cuda:1")
    assert torch.vmap(function)(x).device == CUDA1
    assert torch.func.grad(function)(x).device == CUDA1
    assert torch.func.jacrev(lambda x: x * 2)(x).device == CUDA1
    assert torch.vmap(torch.func.grad(function))(x).device == CUDA1
    assert set(seen) == {(CUDA1, CUDA, CUDA1)}


def test_inside_the_older_vmap(cuda2):
    x = torch.ones(2, device="cuda:1", requires_grad=True)
    (batch,) = torch.autograd.grad(x * 2, x, torch.eye(2, device="cuda:1"), is_grads_batched=True)
    assert (batch.device, batch.tolist()) == (CUDA1, [[2.0, 0.0], [0.0, 2.0]])


def test_a_gradient_comes_back_inside_functorch(cuda2):
    assert torch.func.grad(lambda x: (x.cuda() * 2).sum())(torch.ones(3)).device == CPU


def test_meta_tensors_are_where_they_are(cuda2):
    x = torch.ones(2, device="meta")
    assert x.device == torch.device("meta")
    assert (x + x).device == torch.device("meta")
    assert torch.ones(2, device="cuda").to("meta").device == torch.device("meta")


def test_labels_end_with_their_storage(cuda2):
    used = set()
    for _ in range(200):
        away, here = torch.ones(100, device="cuda"), torch.ones(100)
        assert (away.device, here.device) == (CUDA, CPU)
        used |= {away.untyped_storage()._cdata, here.untyped_storage()._cdata}
        del away, here
        gc.collect(0)
    assert len(used) < 400, "no address was used twice: this test tests nothing"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["cpu", "cuda:0", "cuda:1", "drop"]), max_size=40))
def test_no_address_inherits_a_label(actions):
    with samedevice.simulate("cuda:2"):
        kept = []
        for action in actions:
            if action == "drop":
                del kept[: len(kept) // 2 + 1]
            else:
                kept.append((torch.empty(64, device=action), action))
        assert all(str(tensor.device) == device for tensor, device in kept)


STEPS = {
    "cpu": lambda x: x.cpu(),
    "cuda": lambda x: x.to("cuda:0"),
    "cuda 1": lambda x: x.cuda(1),
    "copy": lambda x: x.to(x.device, copy=True),
    "double": lambda x: x.double(),
    "add": lambda x: x + 1,
    "in place": lambda x: x.add_(1),
    "view": lambda x: x.view(-1),
    "slice": lambda x: x[:2],
    "clone": lambda x: x.clone(),
    "like": lambda x: torch.ones_like(x),
    "data": lambda x: x.data,
}
HOME = {"cpu": "cpu", "cuda": "cuda:0", "cuda 1": "cuda:1"}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(list(STEPS)), max_size=12))
def test_random_programs_know_where_they_are_and_copy_where_they_move(names):
    with samedevice.simulate("cuda:2"):
        x, expected = torch.zeros(4), "cpu"
        for name in names:
            before, values = x, x.tolist()
            x = STEPS[name](x)
            moved = HOME.get(name, expected) != expected
            expected = HOME.get(name, expected)
            assert str(x.device) == expected
            if moved:
                x.add_(1)
                assert before.tolist() == values, "a move must not alias"


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.t(),
        lambda x: x.transpose(0, 1).coalesce(),
        lambda x: x[0],
        lambda x: x.zero_(),
        lambda x: x.copy_(torch.eye(3).to_sparse()),
        lambda x: x.add_(x),
        lambda x: x.t().to_dense(),
    ],
)
def test_a_sparse_tensor_stays_where_it_is(cuda2, change):
    x = torch.eye(3).to_sparse().to("cuda:1")
    assert change(x).device == x.device == x._values().device == CUDA1


def test_a_sparse_tensor_of_zeros_is_made_on_a_device(cuda2):
    assert torch.sparse_coo_tensor((2, 2), device="cuda").device == CUDA
    assert torch.sparse_coo_tensor(size=(2, 2), device="cuda").device == CUDA


def test_nested_operands_have_kernels_of_their_own(cuda2):
    here = torch.nested.nested_tensor([torch.ones(1, 2), torch.ones(3, 2)])
    weight = torch.ones(2, 2, device="cuda")
    assert torch.nn.functional.linear(here.cuda(), weight).device == CUDA
    with pytest.raises(RuntimeError, match="wrapper_NestedTensorCUDA__linear"):
        torch.nn.functional.linear(here, weight)
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu"):
        here + here.cuda()
