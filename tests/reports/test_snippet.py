import pytest
from hypothesis import given
from hypothesis import strategies as st

from samedevice.findings import Location
from samedevice.reports.columns import width
from samedevice.reports.snippet import snippet


def location(line, column, end_column, end_line=1):
    indent = len(line) - len(line.lstrip())
    return Location("a.py", 1, None, column, end_line, end_column, line.strip(), source_column=indent + 1)


@pytest.mark.parametrize(
    ("line", "flagged", "carets"),
    [
        ("x.to(device)", "x.to(device)", "^^^^^^^^^^^^"),
        ("    y = x.numpy()", "x.numpy()", "    ^^^^^^^^^"),
        ("\ty = f(x)", "x", "      ^"),
        ("名 = x.numpy()", "x.numpy()", "     ^^^^^^^^^"),
        ("a =\tx", "x", "    ^"),
    ],
)
def test_the_flagged_part_is_underlined(line, flagged, carets):
    at = line.rindex(flagged) + 1
    seen = snippet(location(line, at, at + len(flagged)), 90)
    assert seen == (line.strip().expandtabs(4), carets)


def test_an_expression_of_several_lines_is_underlined_to_the_end_of_its_first():
    assert snippet(location("y = f(x,", 5, 3, end_line=2), 90) == ("y = f(x,", "    ^^^^")


def test_a_place_that_is_not_known_shows_nothing():
    assert snippet(Location("a.py", 1, source="x"), 90) is None
    assert snippet(Location("a.py", 1, column=1, source_column=1), 90) is None


@given(st.text("ab é名\t\x00", min_size=1, max_size=300), st.data())
def test_it_is_as_wide_as_it_may_be_and_points_at_the_flagged_part(line, data):
    line = f"a{line}a"
    start = data.draw(st.integers(0, len(line) - 1))
    end = data.draw(st.integers(start + 1, len(line)))
    shown, carets = snippet(location(line, start + 1, end + 1), 60)
    assert width(shown) <= 60
    assert len(carets) <= 60
    assert carets.strip(" ").strip("^") == ""
    assert carets.count("^") >= 1
