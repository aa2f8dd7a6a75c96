from hypothesis import given
from hypothesis import strategies as st

from samedevice.linting.devices.lattice import as_place, join, join_all
from samedevice.linting.devices.places import CPU, CUDA, Place
from samedevice.linting.devices.values import NOTHING, UNKNOWN, Constant, Device, Sequence, Tensor

tensors = st.builds(Tensor, st.sampled_from([None, CPU, CUDA, Place("cuda", 1)]), scalar=st.sampled_from([None, True]))
values = st.one_of(
    tensors,
    st.builds(Constant, st.sampled_from(["cpu", "cuda", 1, None])),
    st.builds(Device, st.sampled_from([CPU, CUDA])),
    st.just(UNKNOWN),
)


def summary(value):
    return type(value), getattr(value, "place", None), getattr(value, "scalar", None), getattr(value, "value", None)


@given(values)
def test_a_value_joined_with_itself_or_with_nothing_is_itself(value):
    assert join(value, value) is value
    assert join(value, NOTHING) is value
    assert join(NOTHING, value) is value


@given(values, values)
def test_the_order_does_not_matter(a, b):
    first, second = join(a, b), join(b, a)
    assert as_place(first) == as_place(second)
    if isinstance(first, Tensor):
        assert summary(first) == summary(second)


@given(tensors, tensors)
def test_a_joined_tensor_has_a_place_only_where_both_have_it(a, b):
    place = join(a, b).place
    assert place is None or place == a.place == b.place


def test_cuda_where_available_is_cuda():
    assert as_place(join(Constant("cuda"), Constant("cpu"))) == CUDA
    assert as_place(join(Device(CPU), Device(Place("cuda", 1)))) == Place("cuda", 1)
    assert as_place(join(Device(Place("cuda", 0)), Device(Place("cuda", 1)))) is None


def test_an_empty_list_does_not_blur_what_a_filled_one_holds():
    filled = Sequence((Tensor(CPU),), Tensor(CPU))
    assert join(Sequence(()), filled).element.place == CPU
    assert join_all([]) is UNKNOWN
