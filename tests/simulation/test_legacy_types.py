import pytest
import torch


def test_they_make_tensors_on_the_device(cuda2):
    made = torch.cuda.FloatTensor([1.0, 2.0])
    assert made.device == torch.device("cuda:0")
    assert made.type() == "torch.cuda.FloatTensor"
    assert torch.cuda.LongTensor(2, 3).shape == (2, 3)
    assert torch.cuda.HalfTensor(2, device="cuda:1").device == torch.device("cuda:1")
    assert torch.cuda.FloatTensor(made).data_ptr() == made.data_ptr()
    assert torch.FloatTensor([1.0]).device == torch.device("cpu")


def test_isinstance_tells_devices_apart(cuda2):
    here, there = torch.ones(1), torch.ones(1, device="cuda")
    assert isinstance(here, torch.FloatTensor)
    assert isinstance(there, torch.cuda.FloatTensor)
    assert not isinstance(there, torch.FloatTensor)
    assert not isinstance(here, torch.cuda.FloatTensor)
    assert not isinstance(there, torch.cuda.LongTensor)
    assert not isinstance(1, torch.FloatTensor)


def test_type_moves_and_casts(cuda2):
    x = torch.ones(1)
    assert x.type(torch.cuda.FloatTensor).is_cuda
    assert x.type("torch.cuda.HalfTensor").type() == "torch.cuda.HalfTensor"
    assert x.cuda().type(torch.FloatTensor).device == torch.device("cpu")
    assert x.type(torch.DoubleTensor).dtype is torch.float64


OPTIONS = (
    "TensorOptions(dtype={}, device={}, layout=Strided, requires_grad=false (default), "
    "pinned_memory=false (default), memory_format=(nullopt))"
)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (
            lambda: torch.FloatTensor(torch.ones(1, device="cuda")),
            TypeError,
            f"expected {OPTIONS.format('float', 'cpu')} (got {OPTIONS.format('float', 'cuda:0')})",
        ),
        (
            lambda: torch.cuda.FloatTensor(torch.ones(1, dtype=torch.half)),
            TypeError,
            f"expected {OPTIONS.format('float', 'cuda')} (got {OPTIONS.format('c10::Half', 'cpu')})",
        ),
        (
            lambda: torch.cuda.FloatTensor(1, device="cpu"),
            RuntimeError,
            "legacy constructor expects device type: cuda but device type: cpu was passed",
        ),
    ],
)
def test_refusals(cuda2, call, error, says):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == says


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_default_tensor_type(cuda2):
    constructor = vars(torch.Tensor)["__new__"]
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    try:
        made = (torch.zeros(1), torch.tensor([1]), torch.Tensor(2), torch.Tensor([1.0]), torch.nn.Linear(1, 1).weight)
        assert {str(tensor.device) for tensor in made} == {"cuda:0"}
        assert torch.FloatTensor(2).device == torch.zeros(1, device="cpu").device == torch.device("cpu")
        assert torch.get_default_device() == torch.device("cpu")
        assert repr(torch.zeros(1, device="cpu")) == "tensor([0.], device='cpu')"
        with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
            torch.randperm(3, generator=torch.Generator())
        with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
            torch.set_default_tensor_type(torch.cuda.LongTensor)
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.zeros(1).device == torch.Tensor(2).device == torch.device("cpu")
    assert vars(torch.Tensor)["__new__"] is constructor


class Tagged(torch.Tensor):
    def __new__(cls, data, tag=0):
        made = super().__new__(cls, data)
        made.tag = tag
        return made


@pytest.mark.parametrize("kind", [Tagged, type("Plain", (torch.Tensor,), {})])
@pytest.mark.parametrize("device", ["cpu", "cuda:0", "cuda:1"])
def test_subclasses_are_constructed_where_their_data_is(cuda2, kind, device):
    data = torch.ones(2, device=device, requires_grad=True)
    made = kind(data)
    assert type(made) is kind
    assert made.device == (made + 1).device == torch.device(device)
    made.sum().backward()
    assert data.grad.device == torch.device(device)
    assert type(kind([1.0, 2.0])) is kind


def test_subclasses_take_arguments_of_their_own(cuda2):
    assert Tagged([1.0], tag=3).tag == 3
    assert Tagged(torch.ones(1, device="cuda"), tag=3).data_ptr() != 0


@pytest.mark.filterwarnings("ignore:.*is deprecated")
def test_sparse_types(cuda2):
    places, values = torch.tensor([[0, 1]]), torch.ones(2)
    types = torch.cuda.sparse.FloatTensor, torch.sparse.FloatTensor
    for type_ in types:
        assert (type_.dtype, type_.is_sparse, type_.layout) == (torch.float32, True, torch.sparse_coo)
        assert type_(places.cuda(1), values.cuda(1), torch.Size([2])).device == torch.device("cuda:1")
        assert type_(places, values).device.type == "cpu", "a sparse tensor is where its parts are"
    assert torch.cuda.sparse.FloatTensor(2, 2).device == torch.device("cuda:0")
    assert torch.sparse.FloatTensor(2, 2).device.type == "cpu"
    here = torch.eye(2).to_sparse()
    there = here.type(torch.cuda.sparse.FloatTensor)
    assert (there.device, there.type()) == (torch.device("cuda:0"), "torch.cuda.sparse.FloatTensor")
    assert [isinstance(x, type_) for x in (here, there) for type_ in types] == [False, True, True, False]
    assert not isinstance(torch.eye(2, device="cuda"), torch.cuda.sparse.FloatTensor)
    assert not isinstance(there, torch.cuda.sparse.DoubleTensor)
