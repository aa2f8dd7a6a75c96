"""What a tensor answers about its device; expectations are what the real CUDA build of 2.13 answered."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from samedevice.faults import fault_of

CPU, CUDA, CUDA1 = torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1")


@pytest.fixture
def c(cuda2):
    return torch.ones(3, device="cuda")


@pytest.fixture
def c1(cuda2):
    return torch.ones(3, device="cuda:1")


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")
def test_questions(c, c1):
    p = torch.ones(3)
    assert (c.device, c1.device, p.device) == (CUDA, CUDA1, CPU)
    assert (c.is_cuda, c.is_cpu, p.is_cuda, p.is_cpu, c.is_mps, c.is_meta) == (True, False, False, True, False, False)
    assert (c.get_device(), c1.get_device(), p.get_device()) == (0, 1, -1)
    assert (torch.get_device(c1), torch.get_device(p)) == (1, -1)
    assert (c.type(), p.type()) == ("torch.cuda.FloatTensor", "torch.FloatTensor")
    assert c.untyped_storage().device == c.storage().device == CUDA
    assert c.untyped_storage().is_cuda
    assert c.__dlpack_device__() == (2, 0)
    assert hasattr(c, "__cuda_array_interface__")
    assert not hasattr(p, "__cuda_array_interface__")


def test_repr(c1):
    assert repr(c1) == "tensor([1., 1., 1.], device='cuda:1')"
    parameter = nn.Parameter(c1)
    assert repr(parameter).endswith("tensor([1., 1., 1.], device='cuda:1', requires_grad=True)")
    assert repr(torch.ones(1)) == "tensor([1.])"
    assert f"{c1[0]:.2f}" == "1.00"


MOVES = {
    "name": (lambda x: x.to("cuda:1"), CUDA1),
    "current": (lambda x: x.to("cuda"), CUDA),
    "device": (lambda x: x.to(torch.device("cuda", 1)), CUDA1),
    "index": (lambda x: x.to(1), CUDA1),
    "keyword": (lambda x: x.to(device="cuda:1", non_blocking=True), CUDA1),
    "other": (lambda x: x.to(torch.ones(1, device="cuda:1")), CUDA1),
    "type": (lambda x: x.type("torch.cuda.FloatTensor"), CUDA),
    "type as": (lambda x: x.type_as(torch.ones(1, device="cuda:1")), CUDA1),
    "cuda": (lambda x: x.cuda(), CUDA),
    "cuda index": (lambda x: x.cuda(1), CUDA1),
    "cuda name": (lambda x: x.cuda("cuda:1", non_blocking=True), CUDA1),
    "cpu": (lambda x: x.cpu(), CPU),
    "to cpu": (lambda x: x.to("cpu"), CPU),
    "cpu type": (lambda x: x.type("torch.FloatTensor"), CPU),
}


@pytest.mark.parametrize(("move", "device"), MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("start", ["cpu", "cuda:0", "cuda:1"])
def test_moves(cuda2, move, device, start):
    x = torch.ones(3, device=start)
    y = move(x)
    same_kind = move in (MOVES["type"][0], MOVES["cpu type"][0]) and device.type == x.device.type
    assert y.device == (x.device if same_kind else device)
    assert (y is x) == (y.device == x.device)
    y.add_(1)
    assert x.tolist() == ([2.0] * 3 if y is x else [1.0] * 3)


def test_a_move_may_change_the_dtype_and_the_strides(cuda2):
    x = torch.ones(1, 2, 3, 4)
    y = x.to("cuda", torch.float16)
    assert (y.device, y.dtype, y.type()) == (CUDA, torch.float16, "torch.cuda.HalfTensor")
    assert y.to(torch.float64).device == CUDA
    assert y.to("cuda", torch.float64).dtype == torch.float64
    assert y.to("cpu", torch.float64).device == CPU
    assert y.to(x).dtype == torch.float32
    z = x.to("cuda", memory_format=torch.channels_last)
    assert z.is_contiguous(memory_format=torch.channels_last)
    assert x.transpose(2, 3).cuda().stride() == x.transpose(2, 3).stride()


def test_copy_is_new_memory(c):
    same, new = c.to("cuda"), c.to("cuda", copy=True)
    assert same is c
    assert new is not c
    new.zero_()
    assert c.sum() == 3


def test_cuda_means_the_current_device(cuda2):
    with torch.cuda.device(1):
        assert torch.zeros(1).cuda().device == torch.zeros(1, device="cuda").device == CUDA1
        assert torch.zeros(1, device="cuda:1").to("cuda").device == CUDA1
    assert torch.zeros(1, device="cuda:1").to("cuda").device == CUDA


@pytest.mark.parametrize("bad", ["cuda:2", 5])
def test_a_device_that_is_not_there(c, bad):
    for use in (
        lambda: c.to(bad),
        lambda: torch.zeros(1, device=bad),
        lambda: c.cuda(bad),
        lambda: c.new_zeros(1, device=bad),
    ):
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            use()


def test_arguments_that_are_wrong_are_pytorch_s_matter(c):
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        c.to("gpu")
    with pytest.raises(TypeError):
        c.to("cuda", "float")
    with pytest.raises(TypeError):
        c.to(object())


def test_numpy_is_refused(c):
    refused = (
        "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )
    for use in (
        c.numpy,
        lambda: np.asarray(c),
        lambda: np.array([c, c]),
        lambda: np.float32(c[0]),
        lambda: c * np.ones(3),
    ):
        with pytest.raises(TypeError) as caught:
            use()
        assert str(caught.value) == refused
    fault = fault_of(caught.value)
    assert fault is not None
    assert (fault.operation, fault.operands[0].device) == ("aten::numpy", "cuda:0")
    with pytest.raises(TypeError, match="can't convert cuda:0"):
        c.requires_grad_().numpy()
    assert c.numpy(force=True).tolist() == c.detach().cpu().numpy().tolist() == [1, 1, 1]


def test_numbers_are_read(c):
    assert (c[0].item(), float(c[0]), int(c[0]), bool(c[0]), c.tolist()) == (1.0, 1.0, 1, True, [1.0] * 3)
    index = torch.tensor(1, device="cuda")
    assert ([10, 20][index], list(range(index)), f"{index}") == (20, [0], "1")
    assert (np.float64(2) * c).device == CUDA
    assert torch.tensor([c[0], c[1]]).device == CPU


def test_other_libraries(c):
    with pytest.raises(RuntimeError, match=r"Unsupported device in DLTensor\."):
        np.from_dlpack(c)
    shared = torch.from_dlpack(c)
    assert shared.device == CUDA
    shared.zero_()
    assert c.sum() == 0
    with pytest.raises(TypeError, match="apply_ is only implemented on CPU tensors"):
        c.apply_(abs)


def test_pinning(c):
    with pytest.raises(
        RuntimeError, match=r"cannot pin 'torch\.cuda\.FloatTensor' only dense CPU tensors can be pinned"
    ):
        c.pin_memory()
    p = torch.ones(3)
    pinned = p.pin_memory()
    assert (pinned.is_pinned(), pinned.device, p.is_pinned(), c.is_pinned()) == (True, CPU, False, False)
    assert pinned.pin_memory() is pinned
    assert torch.zeros(2, pin_memory=True).is_pinned()
    assert torch.empty(2, pin_memory=True).is_pinned()
    assert torch.tensor([1.0], pin_memory=True).is_pinned()


def test_another_device_s_storage_is_refused(c, c1):
    p = torch.ones(3)
    refused = 'Attempted to set the storage of a tensor on device "cuda:0" to a storage on different device "cpu".'
    for source in (p, p.untyped_storage()):
        with pytest.raises(RuntimeError, match=refused):
            c.set_(source)
    c.set_(torch.zeros(2, device="cuda").untyped_storage(), 0, (2,), (1,))
    assert (c.device, c.tolist()) == (CUDA, [0.0, 0.0])
    with pytest.raises(RuntimeError, match='device "cpu" to a storage on different device "cuda:1"'):
        p.set_(c1.untyped_storage())


def test_sharing(c):
    assert c.share_memory_() is c
    assert c.is_shared()
    p = torch.ones(3).share_memory_()
    assert p.is_shared()
    assert p.device == CPU


def roundtrip_pickle(x):
    return pickle.loads(pickle.dumps(x))


def roundtrip_save(x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, roundtrip_pickle, roundtrip_save])
@pytest.mark.parametrize("make", [torch.ones, lambda n, device: nn.Parameter(torch.ones(n, device=device))])
def test_the_label_travels(cuda2, copied, make):
    assert copied(make(3, device="cuda:1")).device == CUDA1
    assert copied(make(3, device="cpu")).device == CPU


def test_modules_and_optimizers_are_copied_with_their_devices(cuda2):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).cuda(1)
    assert {t.device for t in copy.deepcopy(model).state_dict().values()} == {CUDA1}
    assert {t.device for t in roundtrip_save(model.state_dict()).values()} == {CUDA1}


def test_others_like_it(c1):
    makers = (c1.new_zeros(2), c1.new_empty(2), c1.new_full((2,), 1.0), c1.new_tensor([1.0]), c1.new(2), c1.new_ones(2))
    assert {made.device for made in makers} == {CUDA1}
    assert c1.new_zeros(2, device="cpu").device == c1.new_tensor([1.0], device="cpu").device == CPU
    with pytest.warns(UserWarning, match="To copy construct"):
        assert c1.new_tensor(torch.ones(2)).device == CUDA1
    assert torch.ones(2).new_zeros(2, device="cuda").device == CUDA
    assert torch.zeros_like(c1, device="cpu").device == torch.empty_like(c1, device=torch.device("cpu")).device == CPU
    assert torch.zeros_like(torch.ones(2), device=0).device == CUDA


def test_moved_modules(cuda2):
    model = nn.Linear(2, 2)
    weight = model.weight
    model(torch.ones(1, 2)).sum().backward()
    model.to(0)
    assert model.weight is weight
    assert (weight.device, weight.grad.device) == (CUDA, CUDA)
    assert model.cuda(1).bias.device == CUDA1
    assert model.cpu().bias.device == CPU
    assert model.to("cuda", torch.float16).weight.type() == "torch.cuda.HalfTensor"
    moved = nn.Parameter(torch.ones(2)).to("cuda")
    assert (type(moved), moved.is_leaf) == (torch.Tensor, False)


def test_lazy_modules(cuda2):
    model = nn.LazyLinear(3).cuda()
    assert model(torch.ones(1, 4, device="cuda")).device == CUDA
    assert model.weight.device == CUDA


class Recording(torch.Tensor):
    seen = ()

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen += (func,)
        return super().__torch_function__(func, types, args, kwargs)


def test_subclasses_keep_their_class_and_hear_of_their_moves(cuda2):
    x = torch.ones(2).as_subclass(Recording)
    Recording.seen = ()
    y = x.to("cuda:1")
    assert (type(y), y.device) == (Recording, CUDA1)
    assert torch.Tensor.to in Recording.seen
    assert torch._C.TensorBase.to in Recording.seen, "a table made before the simulation must find its entry"


def test_handlers_made_before_are_found():
    table = {torch.Tensor.cuda: "cuda", torch.zeros: "zeros"}
    import samedevice

    with samedevice.simulate("cuda"):
        assert table[torch.Tensor.cuda] == "cuda"
        assert table[torch.zeros] == "zeros"
        assert torch.Tensor.cuda.__name__ == "cuda"


class Wrapper(torch.Tensor):
    """A subclass with operators of its own."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        unwrapped = [a.inner if isinstance(a, cls) else a for a in args]
        result = func(*unwrapped, **(kwargs or {}))
        return cls(result) if isinstance(result, torch.Tensor) else result


def test_wrapper_subclasses(cuda2):
    x = Wrapper(torch.ones(2, device="cuda:1"))
    assert x.device == x.inner.device == CUDA1
    assert (x + x).inner.device == CUDA1
    assert x.cpu().inner.device == x.cpu().device == CPU
    assert Wrapper(torch.ones(2)).to("cuda").inner.device == CUDA
    with pytest.raises(RuntimeError, match="cuda:1 and cpu"):
        x + torch.ones(2)


def test_out_says_where_and_device_must_be_of_that_kind(cuda2):
    out = torch.empty(2, device="cuda:1")
    assert torch.zeros(2, out=out, device="cuda").device == torch.device("cuda:1")
    with pytest.raises(RuntimeError, match=r"device type cpu does not match device type of out parameter \(cuda\)"):
        torch.zeros(2, out=out, device="cpu")
    with pytest.raises(RuntimeError, match=r"device type cuda does not match device type of out parameter \(cpu\)"):
        torch.arange(2, out=torch.empty(2), device="cuda")


@pytest.mark.parametrize("kind", ["cuda", int, "torch.cuda.FooTensor"])
def test_no_type_at_all(cuda2, kind):
    with pytest.raises((ValueError, RuntimeError)):
        torch.ones(2).type(kind)


def test_a_warning_points_at_the_line_that_caused_it(cuda2):
    with pytest.warns(UserWarning, match="copy construct") as caught:
        torch.tensor(torch.ones(2, device="cuda"))
    assert caught[0].filename == __file__


def test_types_that_only_a_device_computes_with(cuda2):
    x = torch.tensor([0, 1, 1], dtype=torch.int32)
    counts = torch.histc(x.cuda(), bins=2, min=0, max=1)
    assert counts.tolist() == [1, 2]
    assert counts.dtype is torch.int32
    with pytest.raises(RuntimeError, match="not implemented for 'Int'"):
        torch.histc(x, bins=2, min=0, max=1)


def test_a_traced_device_is_recorded(cuda2):
    fx = pytest.importorskip("torch.fx")
    constant = torch.ones(3)

    def program(x):
        made = torch.zeros(3, device=x.device) + torch.tensor([1.0, 2.0, 3.0], device=x.device)
        return x + made + torch.arange(3, device=x.device) + constant.to(x.device) + constant.to(x)

    traced = fx.symbolic_trace(program)
    x = torch.ones(3, device="cuda:1")
    for result in (traced(x), fx.Interpreter(traced).run(x), program(x)):
        assert result.tolist() == [4.0, 6.0, 8.0]
        assert result.device == x.device


def test_methods_that_call_python_compare_types(cuda2):
    x, y = torch.ones(2), torch.ones(2, device="cuda")
    with pytest.raises(TypeError, match=r"map_: expected torch.FloatTensor for 'other' \(got torch.cuda.FloatTensor\)"):
        x.map_(y, lambda a, b: a)
    with pytest.raises(TypeError, match="for argument 'y'"):
        x.map2_(x, y, lambda a, b, c: a)
    with pytest.raises(TypeError, match="map_ is only implemented on CPU tensors"):
        y.map_(y, lambda a, b: a)
    assert x.map_(x, lambda a, b: a + b).tolist() == [2.0, 2.0]
