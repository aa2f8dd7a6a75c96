import io

import pytest
import torch
from torch import nn

import samedevice
from samedevice.faults import fault_of

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
