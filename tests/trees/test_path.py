"""Paths print as the code that leads there, and running that code does lead there."""

from __future__ import annotations

import enum
from collections import namedtuple
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from samedevice.trees.path import Path, attribute, element, item
from samedevice.trees.walk import walk


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([], "batch"),
        ([item("targets"), item(3), attribute("boxes")], 'batch["targets"][3].boxes'),
        ([item("it's")], 'batch["it\'s"]'),
        ([item('a "b"')], "batch['a \"b\"']"),
        ([item("a\n\\")], 'batch["a\\n\\\\"]'),
        ([item(("a", "to", "b"))], 'batch[("a", "to", "b")]'),
        ([item(("a",))], 'batch[("a",)]'),
        ([item(())], "batch[()]"),
        ([item(None), item(True), item(1.5), item(b"x")], "batch[None][True][1.5][b'x']"),
        ([item(Colour.RED)], "batch[Colour.RED]"),
        ([item(object())], "batch[<object>]"),
        ([item("s"), element(2), item(0)], 'list(batch["s"])[2][0]'),
        ([attribute("a b")], 'getattr(batch, "a b")'),
        ([attribute("class"), attribute("x")], 'getattr(batch, "class").x'),
        ([None, item(0)], "batch[0]"),
    ],
)
def test_text(steps, text):
    path = Path("batch")
    for step in steps:
        path = path / step
    assert str(path) == text


def test_a_long_path_is_shortened_in_the_middle():
    path = Path("x")
    for index in range(100_000):
        path = path / item(index)
    assert str(path).startswith("x[0][1]")
    assert "[19]…[99980]" in str(path)
    assert str(path).endswith("[99999]")


def test_paths_share_their_beginnings():
    start = Path("x") / item(0)
    assert [str(start / item("a")), str(start / item("b")), str(start)] == ['x[0]["a"]', 'x[0]["b"]', "x[0]"]
    assert repr(start) == "<Path x[0]>"
    assert start.root == "x"


Pair = namedtuple("Pair", ["left", "right"])

keys = st.one_of(st.text(max_size=4), st.integers(), st.booleans(), st.none(), st.tuples(st.text(max_size=2)))
nests = st.recursive(
    st.builds(object),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3),
        st.builds(Pair, inner, inner),
        st.dictionaries(st.text(min_size=1, max_size=3).filter(lambda s: "\0" not in s), inner, max_size=2).map(
            lambda values: SimpleNamespace(**values)
        ),
    ),
    max_leaves=10,
)


@example(SimpleNamespace(**dict.fromkeys(["\N{MICRO SIGN}"])))
@settings(deadline=None, derandomize=True)
@given(nests)
def test_a_path_is_the_code_that_leads_there(data):
    for path, value in walk(data, "data"):
        assert eval(str(path), {"data": data}) is value
