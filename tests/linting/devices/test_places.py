import pytest
from hypothesis import given
from hypothesis import strategies as st

from samedevice.linting.devices.places import CPU, CUDA, Cell, Certainty, Place, difference, parse_place, resolve

places = st.one_of(
    st.just(CPU),
    st.builds(Place, st.sampled_from(["cuda", "mps", "xpu"]), st.sampled_from([None, 0, 1, "rank"])),
    st.builds(Cell, st.just("somewhere"), st.sampled_from(list(Certainty))),
)


@given(places, places)
def test_difference_is_symmetric(a, b):
    assert difference(a, b) == difference(b, a)


@given(places)
def test_nothing_differs_from_itself_or_from_the_unknown(place):
    assert difference(place, place) is Certainty.UNKNOWN
    assert difference(place, None) is Certainty.UNKNOWN


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (CPU, CUDA, Certainty.CERTAIN),
        (CUDA, Place("cuda", 0), Certainty.UNKNOWN),
        (CUDA, Place("cuda", 1), Certainty.CERTAIN),
        (Place("cuda", 0), Place("cuda", 1), Certainty.CERTAIN),
        (CUDA, Place("cuda", "rank"), Certainty.CERTAIN),  # not for every rank
        (Place("cuda", 1), Place("cuda", "rank"), Certainty.UNKNOWN),
        (Place("meta"), CUDA, Certainty.UNKNOWN),
        (Place("mps"), CUDA, Certainty.CERTAIN),
    ],
)
def test_difference(a, b, expected):
    assert difference(a, b) is expected


def test_the_current_device_may_be_any():
    assert difference(CUDA, Place("cuda", 1), current_index=None) is Certainty.UNKNOWN


def test_a_cell_differs_from_the_cpu_as_far_as_the_code_shows():
    assert difference(Cell("x"), CPU) is Certainty.UNKNOWN
    assert difference(Cell("x", Certainty.CONVENTION), CPU) is Certainty.CONVENTION
    assert difference(Cell("x", Certainty.CERTAIN), Cell("y", Certainty.CERTAIN)) is Certainty.UNKNOWN


def test_linked_cells_share_what_is_known():
    first, second = Cell("x", Certainty.CERTAIN), Cell("y")
    first.join(second)
    assert difference(second, CPU) is Certainty.CERTAIN
    second.join(CUDA)
    assert resolve(first) == CUDA
    first.join(CPU)  # already placed: nothing changes
    assert resolve(first) == CUDA


@pytest.mark.parametrize(
    ("text", "place"),
    [("cuda:1", Place("cuda", 1)), ("cuda", CUDA), ("cpu", CPU), ("cpu:0", CPU), ("gpu", None), ("cuda:x", None)],
)
def test_parse_place(text, place):
    assert parse_place(text) == place


def test_places_read_as_they_are_written():
    assert [str(Place("cuda", index)) for index in (None, 1, "rank")] == ["cuda", "cuda:1", "cuda:{rank}"]
