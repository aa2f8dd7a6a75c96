"""Which operator calls a device refuses, in which words, and what is attached for whoever explains it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samedevice import messages
from samedevice.faults import fault_of
from samedevice.simulation import calls
from samedevice.simulation.device_checks import check, needs_check, result_devices

aten = torch.ops.aten
CPU, CUDA, CUDA1 = torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1")


class Tensors:
    """Tensors on the CPU with labels beside them."""

    def __init__(self):
        self._labels = []

    def on(self, device, *shape, dtype=torch.float32):
        tensor = torch.zeros(shape, dtype=dtype)
        self._labels.append((tensor, torch.device(device)))
        return tensor

    def device_of(self, tensor):
        return next((label for known, label in self._labels if known is tensor), CPU)

    def check(self, func, *args, **kwargs):
        return check(func, args, kwargs, self.device_of)

    def refusal(self, func, *args, **kwargs):
        with pytest.raises(Exception) as caught:
            self.check(func, *args, **kwargs)
        return caught.value


@pytest.fixture
def t():
    return Tensors()


@pytest.fixture
def newest_words(monkeypatch):
    for module in (calls,):
        monkeypatch.setattr(module, "torch_version", lambda: (2, 13))


def _same(argument, device, other, method):
    return (
        f"Expected all tensors to be on the same device, but got {argument} is on {device}, different from other "
        f"tensors on {other} (when checking argument in method {method})"
    )


@pytest.mark.usefixtures("newest_words")
class TestGeneratedCheck:
    def test_blames_the_first_that_differs_from_the_first(self, t):
        error = t.refusal(aten.addmm.default, t.on("cuda:0", 3), t.on("cpu", 2, 3), t.on("cuda:0", 3, 3))
        assert type(error) is RuntimeError
        assert str(error) == _same("mat1", "cpu", "cuda:0", "wrapper_CUDA_addmm")

    def test_compares_the_index_too(self, t):
        error = t.refusal(aten.mm.default, t.on("cuda:0", 3, 3), t.on("cuda:1", 3, 3))
        assert str(error) == _same("mat2", "cuda:1", "cuda:0", "wrapper_CUDA_mm")

    def test_out_comes_first(self, t):
        error = t.refusal(aten.mm.out, t.on("cuda:0", 3, 3), t.on("cuda:0", 3, 3), out=t.on("cpu", 3, 3))
        assert str(error) == _same("self", "cuda:0", "cpu", "wrapper_CUDA_mm_out_out")

    def test_a_scalar_on_the_cpu_is_no_exception(self, t):
        error = t.refusal(aten.clamp.Tensor, t.on("cuda:0", 3), t.on("cpu"))
        assert str(error) == _same("min", "cpu", "cuda:0", "wrapper_CUDA_clamp_Tensor")

    def test_an_empty_tensor_is_no_exception(self, t):
        error = t.refusal(aten.cat.default, [t.on("cuda:0", 3), t.on("cpu", 0)])
        assert str(error) == _same("tensors", "cpu", "cuda:0", "wrapper_CUDA_cat")

    @pytest.mark.parametrize(
        ("func", "shapes", "method"),
        [
            (aten.index_select.default, [(3,), 0, (2,)], "wrapper_CUDA__index_select"),
            (aten.bucketize.Tensor, [(3,), (2,)], "wrapper_CUDA_Tensor_bucketize"),
            (aten.clamp_min_.Tensor, [(3,), (3,)], "wrapper_CUDA_clamp_min__Tensor"),
            (aten._prelu_kernel.default, [(3,), (3,)], "wrapper_CUDA___prelu_kernel"),
            (aten.normal.Tensor_Tensor, [(3,), (3,)], "wrapper_CUDA_Tensor_Tensor_normal"),
            (aten.masked_scatter_.default, [(3,), (3,), (3,)], "wrapper_CUDA__masked_scatter_"),
        ],
    )
    def test_wrappers_are_named_as_torchgen_names_them(self, t, func, shapes, method):
        args = [t.on("cuda:0" if i == 0 else "cpu", *s) if isinstance(s, tuple) else s for i, s in enumerate(shapes)]
        assert f"in method {method})" in str(t.refusal(func, *args))

    def test_keyword_only_tensors_are_not_looked_at(self, t):
        lists = [[t.on("cuda:0", 3)] for _ in range(4)]
        assert t.check(
            aten._fused_adam_.default,
            *lists,
            [],
            [t.on("cuda:0")],
            lr=0.1,
            beta1=0.9,
            beta2=0.9,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
            grad_scale=t.on("cpu"),
            found_inf=None,
        ) == torch.device("cuda:0")

    def test_composites_are_checked_by_what_they_call(self, t):
        error = t.refusal(aten.embedding.default, t.on("cuda:0", 4, 3), t.on("cpu", 2, dtype=torch.long))
        assert str(error) == _same("index", "cpu", "cuda:0", "wrapper_CUDA__index_select")
        error = t.refusal(aten.stack.default, [t.on("cpu", 3), t.on("cuda:1", 3)])
        assert str(error) == _same("tensors", "cuda:1", "cpu", "wrapper_CUDA_cat")

    def test_sparse_kernels_are_named(self, t):
        eye = torch.eye(3).to_sparse()
        t._labels.append((eye, CUDA))
        assert "wrapper_SparseCUDA__mm" in str(t.refusal(aten.mm.default, eye, t.on("cpu", 3, 3)))


def test_older_versions_word_it_their_way(t, monkeypatch):
    monkeypatch.setattr(calls, "torch_version", lambda: (2, 6))
    error = t.refusal(aten.mm.default, t.on("cpu", 3, 3), t.on("cuda:0", 3, 3))
    assert str(error) == (
        "Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0! "
        "(when checking argument for argument mat2 in method wrapper_CUDA_mm)"
    )


class TestTensorIterator:
    TWO = "Expected all tensors to be on the same device, but found at least two devices, {} and {}!"

    @pytest.mark.parametrize("order", [("cuda:0", "cpu"), ("cpu", "cuda:0")])
    def test_the_device_is_named_before_the_cpu(self, t, order):
        error = t.refusal(aten.add.Tensor, t.on(order[0], 3), t.on(order[1], 3))
        assert str(error) == self.TWO.format("cuda:0", "cpu")

    @pytest.mark.parametrize("order", [("cuda:0", "cpu"), ("cpu", "cuda:0")])
    def test_a_scalar_on_the_cpu_joins(self, t, order):
        shapes = [() if device == "cpu" else (3,) for device in order]
        assert t.check(aten.mul.Tensor, t.on(order[0], *shapes[0]), t.on(order[1], *shapes[1])) == CUDA

    def test_a_scalar_on_the_device_does_not(self, t):
        assert str(t.refusal(aten.add.Tensor, t.on("cpu", 3), t.on("cuda:0"))) == self.TWO.format("cuda:0", "cpu")

    def test_nor_a_scalar_on_another_device(self, t):
        error = t.refusal(aten.add.Tensor, t.on("cuda:0", 3), t.on("cuda:1"))
        assert str(error) == self.TWO.format("cuda:0", "cuda:1")

    def test_outputs_are_no_exception(self, t):
        assert str(t.refusal(aten.add_.Tensor, t.on("cpu"), t.on("cuda:0"))) == self.TWO.format("cuda:0", "cpu")

    def test_two_scalars_are_too_many(self, t):
        error = t.refusal(aten.add.out, t.on("cpu"), t.on("cpu"), out=t.on("cuda:0"))
        assert str(error) == "Trying to pass too many CPU scalars to non-CPU kernel!"

    def test_reductions_name_the_out_device(self, t):
        error = t.refusal(aten.sum.IntList_out, t.on("cuda:0", 3), [0], out=t.on("cpu"))
        assert str(error) == "Expected out tensor to have device cuda:0, but got cpu instead"

    def test_lists_are_compared_by_position(self, t):
        first, second = [t.on("cuda:0", 3), t.on("cpu", 3)], [t.on("cuda:0", 3), t.on("cpu", 3)]
        assert t.check(aten._foreach_add.List, first, second) is None
        error = t.refusal(aten._foreach_add.List, [t.on("cuda:0", 3)], [t.on("cpu", 3)])
        assert str(error) == self.TWO.format("cuda:0", "cpu")


class TestOwnRules:
    def test_indices_may_be_on_the_cpu(self, t):
        index = t.on("cpu", 2, dtype=torch.long)
        assert t.check(aten.index.Tensor, t.on("cuda:0", 3), [None, index]) == CUDA

    def test_the_indexed_tensor_may_not_be_elsewhere(self, t):
        error = t.refusal(aten.index.Tensor, t.on("cpu", 3), [t.on("cuda:0", 2, dtype=torch.long)])
        assert str(error) == "indices should be either on cpu or on the same device as the indexed tensor (cpu)"

    def test_written_indices_may_be_anywhere(self, t):
        index = t.on("cuda:0", 2, dtype=torch.long)
        assert t.check(aten.index_put_.default, t.on("cpu", 3), [index], t.on("cpu", 2)) == CPU

    @pytest.mark.parametrize("func", [aten.copy_.default, aten.slice_scatter.default])
    def test_copies_are_free(self, t, func):
        assert t.check(func, t.on("cpu", 3), t.on("cuda:0", 3)) == CPU

    def test_a_convolution_names_types(self, t):
        options = [None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1]
        error = t.refusal(aten.convolution.default, t.on("cuda:0", 1, 3, 8, 8), t.on("cpu", 4, 3, 3, 3), *options)
        expected = "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same"
        assert str(error) == expected

    def test_packed_sequences_have_data_and_sizes_apart(self, t):
        args = (t.on("cuda:0", 3, 2, 4), t.on("cpu", 2, dtype=torch.long), False)
        assert t.check(aten._pack_padded_sequence.default, *args) is None
        assert result_devices(aten._pack_padded_sequence.default, args, t.device_of) == (CUDA, CPU)
        error = t.refusal(aten._pack_padded_sequence.default, args[0], t.on("cuda:0", 2, dtype=torch.long), False)
        assert str(error) == "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"


class TestWithoutMix:
    def test_one_device_passes_and_is_the_result(self, t):
        assert t.check(aten.mm.default, t.on("cuda:1", 3, 3), t.on("cuda:1", 3, 3)) == CUDA1
        assert t.check(aten.mm.default, t.on("cpu", 3, 3), t.on("cpu", 3, 3)) == CPU

    def test_what_only_the_cpu_has_is_refused(self, t):
        assert needs_check(aten.histogram.bin_ct)
        assert not needs_check(aten.add.Tensor)
        error = t.refusal(aten.histogram.bin_ct, t.on("cuda:0", 3), 4)
        assert type(error) is NotImplementedError
        assert str(error).startswith("Could not run 'aten::histogram.bin_ct' with arguments from the 'CUDA' backend.")
        assert t.check(aten.histogram.bin_ct, t.on("cpu", 3), 4) == CPU

    def test_a_generator_is_of_the_kind_of_its_tensor(self, t):
        generator = torch.Generator()
        assert t.check(aten.bernoulli.default, t.on("cpu", 3), generator=generator) == CPU
        error = t.refusal(aten.bernoulli.default, t.on("cuda:0", 3), generator=generator)
        assert str(error) == "Expected a 'cuda' device type for generator but found 'cpu'"

    def test_a_factory_has_no_operand(self, t):
        assert t.check(aten.zeros.default, [3], device=CUDA) is None


@pytest.mark.usefixtures("newest_words")
def test_other_devices_have_their_own_wrappers(t):
    said = str(t.refusal(aten.mm.default, t.on("xpu:0", 3, 3), t.on("cpu", 3, 3)))
    assert said == _same("mat2", "cpu", "xpu:0", "wrapper_XPU_mm")
    said = str(t.refusal(aten.embedding.default, t.on("xpu:0", 3, 3), t.on("cpu", 2, dtype=torch.long)))
    assert said == _same("index", "cpu", "xpu:0", "wrapper_XPU__index_select")
    said = str(t.refusal(aten.bmm.default, t.on("mps:0", 1, 3, 3), t.on("cpu", 1, 3, 3)))
    assert said == "Placeholder storage has not been allocated on MPS device!"


def test_the_operands_are_attached(t):
    bias, x, weight = t.on("cuda:0", 3), t.on("cpu", 2, 3), t.on("cuda:0", 3, 3)
    fault = fault_of(t.refusal(aten.addmm.default, bias, x, weight))
    assert fault.operation == "aten::addmm"
    assert [(o.argument, o.device, o.shape) for o in fault.operands] == [
        ("self", "cuda:0", (3,)),
        ("mat1", "cpu", (2, 3)),
        ("mat2", "cuda:0", (3, 3)),
    ]
    assert fault.operands[fault.blamed].tensor() is x


_DEVICES = st.sampled_from(["cpu", "cuda:0", "cuda:1"])
_SHAPES = st.sampled_from([(), (3,)])
_BINARY = [
    getattr(aten, name).Tensor if hasattr(getattr(aten, name), "Tensor") else getattr(aten, name).default
    for name in (
        "add",
        "clamp_min",
        "eq",
        "fmod",
        "hypot",
        "logaddexp",
        "maximum",
        "nextafter",
        "xlogy",
        "atan2",
        "gcd",
    )
]


@given(st.sampled_from(_BINARY), _DEVICES, _SHAPES, _DEVICES, _SHAPES)
def test_an_answer_speaks_of_the_operands_and_is_recognised(func, device, shape, other_device, other_shape):
    t = Tensors()
    operands = t.on(device, *shape), t.on(other_device, *other_shape)
    try:
        found = t.check(func, *operands)
    except RuntimeError as error:
        said = messages.recognise(str(error))
        assert said is not None
        assert set(said.devices) == {device, other_device}
    else:
        assert str(found) in (device, other_device)
        assert device == other_device or found != CPU
