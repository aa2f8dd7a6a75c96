"""Functions that compare devices above their operators."""

import pytest
import torch

from samedevice.faults import fault_of
from samedevice.simulation.function_checks import check_call, patches
from samedevice.simulation.patching import Patch

CPU, CUDA, CUDA1 = torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1")


class Labelled:
    def __init__(self):
        self._labels = []

    def on(self, device, *shape):
        tensor = torch.zeros(shape)
        self._labels.append((tensor, torch.device(device)))
        return tensor

    def device_of(self, tensor):
        return next((label for known, label in self._labels if known is tensor), CPU)

    def refusal(self, name, *args, **kwargs):
        with pytest.raises(RuntimeError) as caught:
            check_call(name, args, kwargs, self.device_of)
        return str(caught.value)


@pytest.fixture
def t():
    return Labelled()


def _cell(t, **elsewhere):
    shapes = {"input": (1, 3), "w_ih": (16, 3), "w_hh": (16, 4), "b_ih": (16,), "b_hh": (16,)}
    made = {name: t.on(elsewhere.get(name, "cuda:0"), *shape) for name, shape in shapes.items()}
    hx = (t.on(elsewhere.get("h", "cuda:0"), 1, 4), t.on(elsewhere.get("c", "cuda:0"), 1, 4))
    return made["input"], hx, *list(made.values())[1:]


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("packed", [False, True])
def test_recurrent_layers_look_at_hidden_state_then_parameters(t, name, packed):
    sizes = [t.on("cpu", 2)] if packed else []
    here, there = t.on("cuda:0", 5, 1, 3), t.on("cpu", 1, 1, 4)
    weights = [t.on("cpu", 16, 3), t.on("cpu", 16)]
    hidden = (there, there) if name == "lstm" else there
    assert t.refusal(name, here, *sizes, hidden, weights, True) == (
        "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor at cpu"
    )
    state = t.on("cuda:0", 1, 1, 4)
    hidden = (state, state) if name == "lstm" else state
    assert t.refusal(name, here, *sizes, hidden, weights, True) == (
        "Input and parameter tensors are not at the same device, found input tensor at cuda:0 and parameter tensor at "
        "cpu"
    )


@pytest.mark.parametrize(
    ("elsewhere", "argument", "method"),
    [
        ({"w_ih": "cpu"}, "mat2", "wrapper_CUDA_mm"),
        ({"h": "cpu"}, "mat2", "wrapper_CUDA_mm"),
        ({"c": "cpu"}, "cx", "wrapper_CUDA___thnn_fused_lstm_cell"),
        ({"b_ih": "cpu"}, "input_bias", "wrapper_CUDA___thnn_fused_lstm_cell"),
    ],
)
def test_lstm_cells_are_fused_on_a_device(t, elsewhere, argument, method):
    said = t.refusal("lstm_cell", *_cell(t, **elsewhere))
    assert argument in said
    assert method in said


REFUSED = [
    ("take_along_dim", ["cpu", "cuda:0"], "Expected tensor to have cpu Device, but got tensor with cuda:0 Device"),
    ("quantile", ["cuda:0", "cpu"], "quantile() q tensor must be on the same device as the input tensor"),
    ("inner", ["cuda:0", "cpu"], "Expected tensor to have cuda DeviceType, but got tensor with cpu DeviceType"),
    (
        "tensor_split",
        ["cuda:0", "cuda:0"],
        "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on",
    ),
    ("meshgrid", ["cuda:0", "cpu"], "meshgrid expects all tensors to have the same device"),
]


@pytest.mark.parametrize(("name", "devices", "text"), REFUSED, ids=[row[0] for row in REFUSED])
def test_functions_with_words_of_their_own(t, name, devices, text):
    assert text in t.refusal(name, *(t.on(device, 3) for device in devices))


def test_windows_are_with_their_signal(t):
    x = t.on("cuda:0", 800)
    assert t.refusal("stft", x, 400, window=t.on("cpu", 400)) == (
        "stft input and window must be on the same device but got self on cuda:0 and window on cpu"
    )


def test_attention_names_all_three(t):
    q, k, v = t.on("cuda:0", 1, 2, 3, 4), t.on("cpu", 1, 2, 3, 4), t.on("cuda:0", 1, 2, 3, 4)
    assert t.refusal("scaled_dot_product_attention", q, k, v) == (
        "Expected query, key, and value to have the same device type, but got query.device: cuda:0 key.device: cpu and "
        "value.device: cuda:0 instead."
    )


def test_multi_dot_tells_which(t):
    matrices = [t.on("cuda:0", 2, 2), t.on("cuda:0", 2, 2), t.on("cpu", 2, 2)]
    said = t.refusal("multi_dot", matrices)
    assert said == "multi_dot(): all tensors must be on the same device but tensor 0 is on cuda:0 and tensor 2 on cpu"


@pytest.mark.parametrize(
    "name", ["take_along_dim", "inner", "quantile", "rms_norm", "matrix_rank", "add", "unheard_of"]
)
def test_one_device_passes(t, name):
    check_call(name, (t.on("cuda:1", 3), t.on("cuda:1", 3)), {}, t.device_of)


def test_the_fault_names_the_operation(t):
    with pytest.raises(RuntimeError) as caught:
        check_call("inner", (t.on("cuda:0", 3), t.on("cpu", 3)), {}, t.device_of)
    fault = fault_of(caught.value)
    assert (fault.operation, fault.blamed) == ("aten::inner", 1)


def test_patches_leave_all_as_it_was():
    made = list(patches(lambda tensor: tensor.device))
    attributes = [patch for patch in made if isinstance(patch, Patch)]
    before = [vars(patch.owner).get(patch.name) for patch in attributes]
    scripts = dict(torch.jit._builtins._get_builtin_table())
    for patch in made:
        patch.install()
    try:
        assert torch.inner(torch.ones(3), torch.ones(3)) == 3
    finally:
        for patch in reversed(made):
            patch.undo()
    assert [vars(patch.owner).get(patch.name) for patch in attributes] == before
    assert torch.jit._builtins._get_builtin_table() == scripts
