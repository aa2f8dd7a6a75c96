"""torch.save and torch.load on simulated devices. Expected: what the real CUDA build answered."""

import copy
import gc
import io
import pickle
import warnings

import pytest
import torch

import samedevice


def saved(thing, **options):
    buffer = io.BytesIO()
    torch.save(thing, buffer, **options)
    return buffer.getvalue()


def loaded(data, **options):
    return torch.load(io.BytesIO(data), **options)


FORMATS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}
DEVICES = {
    "default": ({}, "cuda:1", "cpu"),
    "str": ({"map_location": "cuda"}, "cuda:0", "cuda:0"),
    "cpu": ({"map_location": "cpu"}, "cpu", "cpu"),
    "device": ({"map_location": torch.device("cuda", 1)}, "cuda:1", "cuda:1"),
    "dict": ({"map_location": {"cuda:1": "cuda:0"}}, "cuda:0", "cpu"),
    "other dict": ({"map_location": {"cuda:0": "cpu"}}, "cuda:1", "cpu"),
    "callable keeps": ({"map_location": lambda storage, location: storage}, "cpu", "cpu"),
    "callable moves": ({"map_location": lambda storage, location: storage.cuda(1)}, "cuda:1", "cuda:1"),
    "callable declines": ({"map_location": lambda storage, location: None}, "cuda:1", "cpu"),
    "unsafe": ({"weights_only": False}, "cuda:1", "cpu"),
    "meta": ({"map_location": "meta"}, "meta", "meta"),
}


@pytest.mark.parametrize("options", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize(("how", "first", "second"), DEVICES.values(), ids=DEVICES)
def test_map_location(cuda2, options, how, first, second):
    x = torch.arange(3.0, device="cuda:1")
    back = loaded(saved({"x": x, "view": x[1:], "y": torch.ones(2)}, **options), **how)
    assert [str(back[key].device) for key in ("x", "view", "y")] == [first, first, second]
    if first != "meta":
        assert back["x"].tolist() == [0, 1, 2]
        back["x"][1] = 9
        assert back["view"][0] == 9, "views share their storage again"
        assert x[1] == 1


@pytest.mark.parametrize(
    ("where", "error", "says"),
    [
        (
            "cuda:7",
            RuntimeError,
            "Attempting to deserialize object on CUDA device 7 but torch.cuda.device_count() is 2. ",
        ),
        (
            "xpu",
            RuntimeError,
            "Attempting to deserialize object on a XPU device but torch.xpu.is_available() is False. ",
        ),
        (
            "foo",
            RuntimeError,
            "don't know how to restore data location of torch.storage.UntypedStorage (tagged with foo)",
        ),
        (1, TypeError, "'int' object is not callable"),
    ],
)
def test_refusals(cuda2, where, error, says):
    with pytest.raises(error) as raised:
        loaded(saved(torch.ones(1)), map_location=where)
    assert str(raised.value).startswith(says)


def test_a_checkpoint_of_two_devices_on_a_smaller_machine():
    with samedevice.simulate("cuda:2"):
        data = saved(torch.ones(1, device="cuda:1"))
    with (
        samedevice.simulate("cuda"),
        pytest.raises(RuntimeError, match=r"CUDA device 1 but torch\.cuda\.device_count\(\) is 1"),
    ):
        loaded(data)
    with pytest.raises(
        RuntimeError, match=r"^Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available"
    ):
        loaded(data)
    assert loaded(data, map_location="cpu").tolist() == [1]


def test_modules_and_optimizers(cuda2, tmp_path):
    model = torch.nn.Linear(2, 2).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2, device="cuda")).sum().backward()
    optimizer.step()
    state = loaded(saved(optimizer.state_dict()))["state"][0]
    assert {key: str(value.device) for key, value in state.items()} == {
        "step": "cpu",
        "exp_avg": "cuda:0",
        "exp_avg_sq": "cuda:0",
    }
    whole = loaded(saved(model), weights_only=False)
    assert whole.weight.is_cuda
    assert torch.equal(whole.weight, model.weight)
    torch.save(model.state_dict(), tmp_path / "m.pt")
    assert torch.load(tmp_path / "m.pt", mmap=True)["weight"].is_cuda


def test_copies_and_pickles(cuda2):
    model = torch.nn.Linear(2, 2).to("cuda:1")
    assert copy.deepcopy(model).weight.device == torch.device("cuda:1")
    for value in (model.weight, model.weight.data):
        assert pickle.loads(pickle.dumps(value)).device == torch.device("cuda:1")


def test_storages(cuda2):
    storage = torch.zeros(2, device="cuda:1").untyped_storage()
    assert (storage.device, storage.is_cuda, storage.get_device()) == (torch.device("cuda:1"), True, 1)
    assert storage.is_shared()
    assert storage.clone().device == storage.device
    assert storage.cpu().device == torch.device("cpu")
    assert torch.zeros(2).untyped_storage().cuda().device == torch.device("cuda:0")
    assert torch.UntypedStorage(4, device="cuda").device == torch.device("cuda:0")
    with warnings.catch_warnings():
        # PyTorch warns of TypedStorage once a process, which may have been in another test.
        warnings.simplefilter("ignore", UserWarning)
        assert torch.zeros(2).storage().cuda(1).device == torch.device("cuda:1")
    assert torch.serialization.location_tag(storage) == "cuda:1"
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.UntypedStorage(4, device="cuda:5")


def test_saving_leaves_labels_alone(cuda2):
    model = torch.nn.Linear(2, 2).cuda()
    saved(model.state_dict())
    cycle = [model.weight.untyped_storage()]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert model.weight.is_cuda
    assert torch.cuda.memory_allocated() == 1024
