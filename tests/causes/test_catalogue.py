"""Codes and slugs are unique and agree with the files; no field of a cause is empty; its examples are whole scripts."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

import samedevice.causes
from samedevice.causes.catalogue import SLUGS, all_causes, by_code, by_slug, find
from samedevice.causes.cause import MARK
from samedevice.errors import UsageError

FOLDER = Path(samedevice.causes.__file__).parent
ROOT = Path(__file__).parent.parent.parent
CAUSES = pytest.mark.parametrize("cause", all_causes(), ids=lambda cause: cause.slug)


def test_codes_and_slugs_are_unique_and_have_a_file_each():
    assert len(set(SLUGS.values())) == len(SLUGS) == 26
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "cause", "catalogue"}
    assert files == {cause.module for cause in all_causes()}
    for code, slug in SLUGS.items():
        assert (by_code(code).code, by_slug(slug).slug) == (code, slug)


@CAUSES
def test_no_field_is_empty(cause):
    for text in (cause.summary, cause.why, cause.fix_safety):
        assert re.fullmatch(r"[A-Z`].*\.", text), text
    assert cause.source.startswith("https://docs.pytorch.org/")
    assert cause.examples
    assert cause.clean


@CAUSES
def test_examples_are_whole_scripts_with_marked_lines(cause):
    for example in cause.examples:
        assert example.marked_lines
        assert MARK not in example.wrong_script
        assert example.wrong_script != example.right
        for script in (example.wrong_script, example.right):
            assert "import torch" in script
            ast.parse(script)
    for script in cause.clean:
        ast.parse(script)
        assert MARK not in script


@pytest.mark.parametrize("text", ["SD103", "sd103", "plain-attribute", "Plain_Attribute"])
def test_a_person_finds_a_cause(text):
    assert find(text).code == "SD103"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plain-atribute", "no cause is called 'plain-atribute'; did you mean plain-attribute?"),
        ("SD13", "did you mean SD113?"),
        ("zebra", "no cause is called 'zebra' (`samedevice causes` lists them)"),
    ],
)
def test_an_unknown_cause_is_told_so(text, message):
    with pytest.raises(UsageError) as caught:
        find(text)
    assert message in str(caught.value)


def test_the_pages_are_those_that_the_catalogue_gives():
    """`python scripts/make_docs.py` writes them."""
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
    make_docs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_docs)
    pages = ROOT / "docs" / "causes"
    assert (pages / "index.md").read_text(encoding="utf-8") == make_docs.index()
    for cause in all_causes():
        assert (pages / f"{cause.slug}.md").read_text(encoding="utf-8") == make_docs.page(cause)
    assert len(list(pages.glob("*.md"))) == len(SLUGS) + 1
