"""The page of ten explained bugs shows what is printed: `python scripts/make_gallery.py` writes it."""

import importlib.util
import re
from pathlib import Path

import pytest

from samedevice.reports.columns import width

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


def pinned_torch():
    (version,) = re.findall(r"(?m)^torch==([\d.]+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"))
    return version


def test_ten_in_english_two_in_chinese_each_on_one_screen():
    assert len(BLOCKS) == 12
    for block in BLOCKS:
        lines = block.splitlines()
        assert len(lines) <= 15
        assert max(map(width, lines)) <= 100


def test_no_absolute_path_is_shown():
    assert not [line for line in PAGE.splitlines() if re.search(r"(^|[\s(])/\w+/", line)]


def test_it_shows_what_is_printed():
    torch = pytest.importorskip("torch")
    if torch.__version__.partition("+")[0] != pinned_torch():
        pytest.skip("operators have other names in other versions of torch")
    spec = importlib.util.spec_from_file_location("make_gallery", ROOT / "scripts" / "make_gallery.py")
    make_gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_gallery)
    assert make_gallery.page() == PAGE
