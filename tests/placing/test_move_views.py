"""Tensors that share memory: when they share it again after a move, and that their values and shapes are right."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from samedevice import move_to_device
from samedevice.placing import move_tensors


def homes(tensors):
    return [tensor.untyped_storage()._cdata for tensor in tensors]


def moved(*tensors):
    new = move_to_device(list(tensors), "meta")
    for one, other in zip(new, tensors, strict=True):
        assert (one.shape, one.dtype, one.device.type) == (other.shape, other.dtype, "meta")
    return new


def test_rows_of_one_batch_move_as_one_copy():
    new = moved(*torch.ones(64, 8).unbind(0))
    assert len(set(homes(new))) == 1
    assert new[0].untyped_storage().nbytes() == 64 * 8 * 4


def test_rows_are_not_copied_one_by_one_first(monkeypatch):
    rows = list(torch.ones(64, 8).unbind(0))
    copied = []
    to = torch.Tensor.to
    monkeypatch.setattr(torch.Tensor, "to", lambda x, *args, **options: copied.append(x) or to(x, *args, **options))
    move_to_device(rows, "meta")
    assert [x.numel() for x in copied] == [8, 64 * 8]


def test_overlapping_views_keep_their_offsets_and_strides():
    x = torch.arange(24.0).view(4, 6)
    views = (x[:, ::2], x.t(), x[1:3], x)
    new = moved(*views)
    assert len(set(homes(new))) == 1
    assert [view.stride() for view in new] == [view.stride() for view in views]
    assert [view.storage_offset() for view in new] == [view.storage_offset() for view in views]


def test_only_the_stretch_under_the_views_is_copied():
    x = torch.ones(1000)
    new = moved(x[100:110], x[105:120])
    assert len(set(homes(new))) == 1
    assert new[0].untyped_storage().nbytes() == 20 * 4
    assert [view.storage_offset() for view in new] == [0, 5]


def test_views_far_apart_move_on_their_own():
    x = torch.ones(1000)
    new = moved(x[:2], x[500:502])
    assert len(set(homes(new))) == 2
    assert [view.untyped_storage().nbytes() for view in new] == [8, 8]


def test_thin_columns_of_a_wide_table_do_not_drag_it_along():
    x = torch.ones(100, 1000)
    new = moved(x[:, 0], x[:, 1])
    assert [view.untyped_storage().nbytes() for view in new] == [400, 400]


def test_aliases_that_autograd_does_not_know():
    x = torch.ones(4)
    new = moved(x, x.detach(), x.data, torch.from_numpy(x.numpy()))
    assert len(set(homes(new[:3]))) == 1


def test_two_storages_over_one_array_stay_two():
    array = torch.ones(4).numpy()
    one, other = torch.from_numpy(array), torch.from_numpy(array)
    assert len(set(homes(moved(one, other)))) == 2
    assert len(set(homes(moved(one, other, one[1:])))) == 2


def test_views_of_another_dtype():
    x = torch.ones(6, dtype=torch.float32)
    new = moved(x, x.view(torch.uint8), x.view(torch.int16)[2:])
    assert len(set(homes(new))) == 1
    pairs = torch.ones(3, dtype=torch.complex64)
    assert len(set(homes(moved(pairs, torch.view_as_real(pairs))))) == 1


def test_expanded_beside_its_base():
    base = torch.ones(1)
    new = moved(base, base.expand(5))
    assert len(set(homes(new))) == 1
    assert new[1].stride() == (0,)
    matrix = torch.ones(3, 1).expand(3, 7)
    assert moved(matrix)[0].untyped_storage().nbytes() == 12
    assert moved(torch.ones(1, 4).expand(0, 4))[0].shape == (0, 4)


def test_autograd_moves_each_on_its_own():
    x = torch.ones(4, requires_grad=True)
    new = moved(x[:2], x[2:])
    assert len(set(homes(new))) == 2
    assert all(view.requires_grad for view in new)
    assert moved(torch.ones(1, requires_grad=True).expand(3))[0].grad_fn is not None


def test_empty_tensors_share_nothing():
    assert [tuple(x.shape) for x in moved(torch.ones(0), torch.ones(0, 2), torch.ones(4)[:0])] == [(0,), (0, 2), (0,)]


def test_a_write_to_one_shows_in_the_others():
    # Values need a second device with memory; the re-viewing itself is the same on the one that is here.
    x = torch.arange(12.0).view(3, 4)
    views = [x[0], x[:, 1], x]
    new: dict = {}
    move_tensors._move_stretch(views, Elsewhere(), False, new)
    copies = [new[id(view)] for view in views]
    assert all(torch.equal(copy, view) for copy, view in zip(copies, views, strict=True))
    copies[2][0, 1] = 100
    assert copies[0][1] == copies[1][0] == 100
    assert x[0, 1] == 1


class Elsewhere:
    """Stands for a device with memory of its own: a move to it is a copy."""


@pytest.fixture(autouse=True)
def copying(monkeypatch):
    to = torch.Tensor.to

    def move(tensor, device, **options):
        return tensor.clone() if isinstance(device, Elsewhere) else to(tensor, device, **options)

    monkeypatch.setattr(torch.Tensor, "to", move)


@st.composite
def views(draw):
    """Some views of one small storage, of any geometry and two dtypes."""
    memory = torch.arange(48, dtype=torch.int16)
    result = []
    for _ in range(draw(st.integers(1, 5))):
        base = memory.view(draw(st.sampled_from([torch.int16, torch.int32, torch.uint8])))
        sizes = draw(st.lists(st.integers(1, 3), min_size=0, max_size=3))
        strides = [draw(st.integers(0, 4)) for _ in sizes]
        last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        if last < len(base):
            offset = draw(st.integers(0, len(base) - 1 - last))
            result.append(base.as_strided(sizes, strides, offset))
    return result


@settings(deadline=None, max_examples=150, suppress_health_check=[], derandomize=True)
@given(views())
def test_any_views_keep_values_and_geometry(tensors):
    with pytest.MonkeyPatch.context() as context:
        to = torch.Tensor.to
        context.setattr(
            torch.Tensor,
            "to",
            lambda x, device, **options: x.clone() if isinstance(device, Elsewhere) else to(x, device, **options),
        )
        new: dict = {}
        move_tensors.move_tensors(tensors, Elsewhere(), False, new)
    for tensor in tensors:
        assert torch.equal(new[id(tensor)], tensor)
        assert new[id(tensor)].dtype == tensor.dtype
        assert new[id(tensor)].untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr()
