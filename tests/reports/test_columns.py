import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samedevice.reports.columns import cut, pad, width, wrap

TEXT = st.text(alphabet="ab1_.()`,，。（）《》…张量设备 \n", max_size=200)
ENGLISH = st.lists(st.text(alphabet="abc.()`,", min_size=1, max_size=12)).map(" ".join)


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("cpu", 3), ("张量", 4), ("x 在 cuda:0 上。", 16), ("e\u0301", 1), ("…", 1)]
)
def test_a_chinese_character_is_two_columns_wide(text, columns):
    assert width(text) == columns


def test_padding_counts_columns():
    assert pad("设备", 6) + "|" == "设备  |"
    assert pad("long enough", 4) == "long enough"


@given(ENGLISH, st.integers(20, 60))
def test_english_wraps_as_the_standard_library_wraps_it(text, columns):
    expected = textwrap.wrap(
        text, columns, initial_indent="ab ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    assert wrap(text, columns, first="ab ", later="    ") == (expected or ["ab"])


@given(TEXT, st.integers(10, 60))
def test_no_line_is_too_wide_and_nothing_is_lost(text, columns):
    lines = wrap(text, columns, later="  ")
    for line in lines:
        assert width(line) <= columns or " " not in line.strip()
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(TEXT, st.integers(12, 60))
def test_no_line_begins_with_punctuation_that_ends_a_phrase(text, columns):
    for line in wrap(text, columns)[1:]:
        assert line[0] not in "，。）》" or text.split()[0][0] in "，。）》" or f" {line[0]}" in text.replace("\n", " ")


def test_chinese_breaks_between_characters_and_never_in_code():
    text = "作为模块普通属性保存的张量，不会随模块的 `model.to(device)` 移动（参见 `register_buffer`）。"
    assert wrap(text, 30, first="  ", later="  ") == [
        "  作为模块普通属性保存的张量，",
        "  不会随模块的",
        "  `model.to(device)` 移动（参",
        "  见 `register_buffer`）。",
    ]


@given(TEXT, st.integers(4, 60))
def test_a_cut_line_fits(text, columns):
    short = cut(text, columns)
    assert width(short) <= columns
    assert short == text or "…" in short


def test_a_cut_line_keeps_both_ends():
    assert (
        cut("logits = self.head(self.encoder(batch['image'], mask))", 40) == "logits = self.head(self.en…age'], mask))"
    )
