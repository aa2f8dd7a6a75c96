"""PyTorch's device texts: what is formatted is recognised with the same values, in every version's wording."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from samedevice import messages
from samedevice.causes.catalogue import by_slug
from samedevice.messages.template import Template, place_pattern
from samedevice.messages.templates import TEMPLATES

_DEVICES = st.sampled_from(["cpu", "cuda:0", "cuda:1", "mps:0", "xpu:3", "meta"])
_WORDS = {
    "device": _DEVICES,
    "argument": st.sampled_from(["self", "mat1", "other", "tensors", "running_mean", "x2"]),
    "method": st.sampled_from(["wrapper_CUDA_addmm", "wrapper_CUDA__index_select", "wrapper_SparseCsrCUDA__mm"]),
    "function": st.sampled_from(["stft", "addmm", "torch.take_along_dim", "MulBackward0"]),
    "index": st.integers(0, 99).map(str),
    "count": st.integers(0, 10**6).map(str),
    "type": st.sampled_from(["torch.cuda.FloatTensor", "torch.FloatTensor", "CPUBFloat16Type", "float", "c10::Half"]),
    "backend": st.sampled_from(["CUDA", "CPU", "XPU"]),
}
_ANY_TEXT = st.text("ab9/:[]", min_size=1, max_size=12)


def _values(template: Template) -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries({name: _WORDS.get(name.rsplit("_", 1)[-1], _ANY_TEXT) for name in template.names})


@st.composite
def _formatted(draw: st.DrawFn) -> tuple[Template, dict[str, str]]:
    template = draw(st.sampled_from(TEMPLATES))
    return template, draw(_values(template))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    _formatted(),
    st.sampled_from(["", "RuntimeError: ", 'File "train.py", line 3\n    x = f(y)\nRuntimeError: ', "错误:"]),
)
def test_what_is_formatted_is_recognised_with_the_same_values(formatted, before):
    template, values = formatted
    text = before + template.fill(values) + "\n\nmore"
    found = messages.recognise(text)
    assert found is not None
    assert (found.kind, dict(found.values)) == (template.kind, values)
    assert text[found.start : found.end] == template.fill(values)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(_formatted())
def test_lines_may_have_been_wrapped(formatted):
    template, values = formatted
    assert messages.recognise(template.fill(values).replace(" ", "\n  ")).kind == template.kind


@pytest.mark.parametrize(
    "text", ["", "all went well on cuda:0", "Expected 4-dimensional input for 4-dimensional weight"]
)
def test_other_texts_are_not_recognised(text):
    assert messages.recognise(text) is None


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.kind)
def test_a_row_is_sound(template):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", template.kind)
    assert all(place in template.names or place.startswith("=") for _, place in template.places)
    assert all(re.compile(place_pattern(name)) for name in template.names)
    if template.cause is not None:
        assert by_slug(template.cause).slug == template.cause


class TestWordings:
    VALUES = {"argument": "mat1", "device": "cpu", "other_device": "cuda:0", "method": "wrapper_CUDA_addmm"}

    def test_from_2_8_the_argument_comes_first(self):
        assert messages.format("same-device", version=(2, 8), **self.VALUES) == (
            "Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors on "
            "cuda:0 (when checking argument in method wrapper_CUDA_addmm)"
        )

    def test_up_to_2_7_two_devices_come_first(self):
        assert messages.format("same-device", version=(2, 7), **self.VALUES) == (
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
            "(when checking argument for argument mat1 in method wrapper_CUDA_addmm)"
        )

    def test_both_are_one_kind(self):
        found = [messages.recognise(messages.format("same-device", version=v, **self.VALUES)) for v in ((2, 7), (2, 8))]
        assert found[0].places == found[1].places == {"mat1": "cpu", "others": "cuda:0"}

    def test_a_kind_that_is_not_there_is_an_error(self):
        with pytest.raises(LookupError, match="no message 'nothing'"):
            messages.format("nothing")
        with pytest.raises(LookupError, match="no message 'same-device' with the values"):
            messages.format("same-device", argument="x")


# Texts as people paste them, older than any wheel that could be asked, and what they say.
PASTED = [
    (
        "RuntimeError: Expected object of backend CUDA but got backend CPU for argument #2 'mat2'",
        "same-device",
        {"argument": "mat2", "index": "2", "backend": "CUDA", "other_backend": "CPU"},
    ),
    (
        "Expected object of device type cuda but got device type cpu for argument #3 'index' in "
        "call to _th_index_select",
        "same-device",
        {"argument": "index", "other_device": "cpu", "device": "cuda", "index": "3", "function": "_th_index_select"},
    ),
    (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
        "(when checking arugment for argument mat1 in method wrapper_addmm)",
        "same-device",
        {"argument": "mat1", "device": "cpu", "other_device": "cuda:0", "method": "wrapper_addmm"},
    ),
    (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, "
        "cuda:1 and cuda:0!",
        "tensor-iterator",
        {"device": "cuda:1", "other_device": "cuda:0"},
    ),
    (
        "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
        "conv-types",
        {"input_type": "torch.cuda.FloatTensor", "argument": "weight", "parameter_type": "torch.FloatTensor"},
    ),
    (
        "RuntimeError: Tensor for argument #2 'mat1' is on CPU, but expected it to be on GPU "
        "(while checking arguments for addmm)",
        "same-device",
        {"index": "2", "argument": "mat1", "function": "addmm"},
    ),
    (
        "TypeError: can't convert CUDA tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        "numpy",
        {"backend": "CUDA"},
    ),
    ("AssertionError: Torch not compiled with CUDA enabled", "no-cuda-build", {"backend": "CUDA"}),
    ("ValueError: can't optimize a non-leaf Tensor", "non-leaf", {}),
    ("AssertionError: No inf checks were recorded for this optimizer.", "no-inf-checks", {}),
]


@pytest.mark.parametrize(("text", "kind", "values"), PASTED, ids=[row[1] for row in PASTED])
def test_pasted_texts_of_all_versions(text, kind, values):
    found = messages.recognise(text)
    assert (found.kind, dict(found.values)) == (kind, values)


def test_the_last_message_wins():
    first = messages.format("rng-state")
    last = messages.format("index-device", device="cpu")
    assert messages.recognise(f"{first}\nDuring handling of the above exception…\n{last}").kind == "index-device"


def test_types_name_devices():
    found = messages.recognise("Input type (CUDABFloat16Type) and bias type (CPUBFloat16Type) should be the same")
    assert found.places == {"input": "cuda", "bias": "cpu"}
    assert found.devices == ("cuda", "cpu")


@pytest.mark.parametrize(
    ("method", "operator"),
    [
        ("wrapper_CUDA_addmm", "addmm"),
        ("wrapper_CUDA__index_select", "index_select"),
        ("wrapper_CUDA___slow_conv2d_forward", "_slow_conv2d_forward"),
        ("wrapper_CUDA_clamp_Tensor", "clamp"),
        ("wrapper_CUDA_clamp_min__Tensor", "clamp_min_"),
        ("wrapper_CUDA_Tensor_bucketize", "bucketize"),
        ("wrapper_CUDA_mm_out_out", "mm"),
        ("wrapper_CUDA_out_complex_out", "complex"),
        ("wrapper_CUDA_scatter__src", "scatter_"),
        ("wrapper_CUDA_scatter_reduce_two", "scatter_reduce"),
        ("wrapper_CUDA__masked_scatter_", "masked_scatter_"),
        ("wrapper_CUDA_isin_Tensor_Tensor", "isin"),
        ("wrapper_SparseCsrCUDA__mm", "mm"),
        ("wrapper_addmm", "addmm"),
        ("wrapper__index_select", "index_select"),
    ],
)
def test_the_operator_in_a_wrapper_name(method, operator):
    assert messages.operator_of(method) == operator
