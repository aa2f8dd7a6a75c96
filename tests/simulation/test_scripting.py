import io

import pytest
import torch
from torch import nn

import samedevice
from samedevice.faults import fault_of
from samedevice.simulation import archives

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
CUDA = torch.device("cuda:0")


def scale(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x + y) * torch.ones(1, device=x.device)


def test_compile_runs_eagerly_and_says_so_once(cuda2, capsys):
    model = nn.Linear(2, 2).cuda()
    assert torch.compile(model) is model
    assert torch.compile(mode="max-autotune")(scale) is scale
    model.compile()
    assert model(torch.ones(1, 2, device="cuda")).device == CUDA
    assert capsys.readouterr().err.count("torch.compile is not simulated") == 1


def test_scripts(cuda2):
    scripted = torch.jit.script(scale)
    assert scripted(torch.ones(2), torch.ones(2)).device.type == "cpu"
    with pytest.raises(RuntimeError):
        scripted(torch.ones(2, device="cuda"), torch.ones(2))


def saved(module):
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    return file


class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("shift", torch.ones(2))
        self.table = torch.ones(2)

    def forward(self, x):
        return self.linear(x) + self.shift + self.table


def test_a_traced_module_loads_onto_a_device(cuda2):
    traced = torch.jit.trace(Shifted(), torch.ones(1, 2))
    loaded = torch.jit.load(saved(traced), map_location="cuda")
    assert {tensor.device for tensor in loaded.state_dict().values()} == {CUDA}
    assert loaded(torch.ones(1, 2, device="cuda")).device == CUDA
    assert torch.jit.load(saved(traced), map_location="cpu").shift.device.type == "cpu"


def test_an_error_in_a_script_says_why(cuda2):
    traced = torch.jit.trace(Shifted(), torch.ones(1, 2)).cuda()
    with pytest.raises(
        RuntimeError, match=r"Expected all tensors to be on the same device.*mat1.*wrapper_CUDA_addmm"
    ) as caught:
        traced(torch.ones(1, 2))
    assert fault_of(caught.value).operation == "aten::addmm"


def test_a_script_made_meanwhile_runs_later():
    with samedevice.simulate("cuda"):
        scripted = torch.jit.script(scale)
    assert scripted(torch.ones(2), torch.ones(2)).tolist() == [2.0, 2.0]


class Spread(nn.Module):
    """Tensors of every kind on three devices; one pair shares a name that is also a string."""

    def __init__(self):
        super().__init__()
        self.name = "cpu"
        self.here = nn.Linear(2, 2)
        self.there = nn.Linear(2, 2).cuda()
        self.register_buffer("shift", torch.ones(2, device="cuda:1"))
        self.table = torch.ones(2, device="cuda")
        self.tables = [torch.ones(1), torch.ones(1, device="cuda:1")]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.there(x) + self.table * len(self.name)


def _places(module):
    return [
        *(str(tensor.device) for tensor in module.state_dict().values()),
        str(module.table.device),
        *(str(tensor.device) for tensor in module.tables),
    ]


def test_an_archive_restores_each_tensor_where_it_was(cuda2, tmp_path):
    model = Spread()
    expected = model(torch.ones(1, 2, device="cuda"))
    torch.jit.script(model).save(tmp_path / "model.pt")
    for source in (tmp_path / "model.pt", saved(torch.jit.script(model))):
        loaded = torch.jit.load(source)
        assert _places(loaded) == _places(model)
        assert loaded.name == "cpu"
        assert torch.equal(loaded(torch.ones(1, 2, device="cuda")), expected)


def test_the_devices_are_in_the_archive_as_a_real_one_writes_them(cuda2, tmp_path):
    torch.jit.script(Spread()).save(tmp_path / "model.pt")
    found = {storage.device for storage in archives.storages_in(archives.stored(tmp_path / "model.pt")["data"])}
    assert found == {"cpu", "cuda:0", "cuda:1"}


def test_an_archive_of_more_devices_is_refused(tmp_path):
    with samedevice.simulate("cuda:2"):
        torch.jit.script(nn.Linear(2, 2).cuda(1)).save(tmp_path / "model.pt")
    with samedevice.simulate("cuda:1"), pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.jit.load(tmp_path / "model.pt")


def test_an_archive_of_the_cpu_is_as_it_was(cuda2, tmp_path):
    scripted = torch.jit.script(nn.Linear(2, 2))
    scripted.save(tmp_path / "model.pt")
    assert torch.jit.load(tmp_path / "model.pt").weight.device.type == "cpu"
    assert archives.stored(io.BytesIO(b"no archive")) == {}


def test_traced_constants_are_restored_on_their_device(cuda2):
    traced = torch.jit.trace(lambda x: x + torch.ones(2, device="cuda"), torch.ones(2, device="cuda"))
    holder = torch.jit.trace_module(_Calling(traced), {"forward": torch.ones(2, device="cuda")})
    loaded = torch.jit.load(saved(holder))
    assert loaded(torch.ones(2, device="cuda")).device == CUDA
    with pytest.raises(RuntimeError, match="found at least two devices"):
        loaded(torch.ones(2))


class _Calling(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_modules_of_checked_functions_can_be_scripted(cuda2):
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.LSTM(2, 2)).cuda())
    assert scripted[1].weight.device == CUDA
