import ast
import codecs
import difflib
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samedevice.causes.catalogue import all_causes
from samedevice.errors import UsageError
from samedevice.findings import Edit
from samedevice.fixing import Change, FixOptions, apply_edits, fix_files, fix_script, fix_text, proposed_changes
from samedevice.fixing.edits import write
from samedevice.linting.lint import lint_source

BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.numpy()  # keep\n'
MENDED = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.cpu().numpy()  # keep\n'

MENDABLE = [
    pytest.param(example, id=f"{cause.slug}-{number}")
    for cause in all_causes()
    if cause.not_fixed is None and cause.not_static is None
    for number, example in enumerate(cause.examples, 1)
]


@pytest.mark.parametrize("example", MENDABLE)
def test_the_wrong_example_becomes_the_right_one(example):
    assert fix_text(example.wrong_script) == example.right


@pytest.mark.parametrize("cause", [cause for cause in all_causes() if cause.not_fixed], ids=lambda cause: cause.slug)
def test_what_is_left_to_a_person_is_left_alone(cause):
    for example in cause.examples:
        assert fix_text(example.wrong_script) == example.wrong_script


PROGRAMS = [example.wrong_script for cause in all_causes() for example in cause.examples]
BLOCKS = [
    "a = torch.zeros(3)",
    "b = torch.ones(3, device='cuda')",
    "c = a + b",
    "c = b.numpy(); d = 1",
    "if True:\n    a = torch.arange(3)\n    c = b[0] * a",
    "def f(x):\n\tn = torch.ones(  # tab and comment\n\t\t3,\n\t)\n\treturn x.to('cuda') + n",
    "f(b)",
    "a.to('cuda')",
    "model = torch.nn.Linear(3, 3).cuda()",
    "model(\n    a,\n)",
    "print('ä', model(a))",
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(BLOCKS), max_size=9), st.sampled_from(["\n", "\r\n"]))
def test_a_mended_text_parses_needs_no_more_and_has_no_new_findings(blocks, end):
    text = ("import torch\n" + "\n".join(blocks) + "\n").replace("\n", end)
    mended = fix_text(text)
    ast.parse(mended)
    assert fix_text(mended) == mended
    assert len(lint_source(mended)) <= len(lint_source(text))
    assert mended.replace(end, "").count("\n") == mended.replace(end, "").count("\r") == 0


lines = st.lists(st.text("ab \t#é", max_size=4), min_size=1, max_size=8)


@given(lines, st.data())
def test_edits_change_their_lines_and_no_others(text, data):
    first = data.draw(st.integers(1, len(text)))
    last = data.draw(st.integers(first, len(text)))
    new = data.draw(st.one_of(st.just([]), lines))
    edit = Edit("x.py", first, last, "\n".join(text[first - 1 : last]), "\n".join(new))
    whole = "\n".join(text) + "\n"
    after = apply_edits(whole, [edit]).split("\n")
    kept = new if edit.new else []
    assert after == [*text[: first - 1], *kept, *text[last:], ""]


@given(lines)
def test_an_edit_for_other_text_is_left_out(text):
    whole = "\n".join(text)
    assert apply_edits(whole, [Edit("x.py", 1, 1, text[0] + "!", "new")]) == whole
    assert apply_edits(whole, [Edit("x.py", len(text) + 1, len(text) + 1, "z", "new")]) == whole


def test_of_overlapping_edits_the_first_stays():
    edits = [Edit("x.py", 1, 2, "a\nb", "A\nB"), Edit("x.py", 2, 3, "b\nc", "lost"), Edit("x.py", 3, 3, "c", "C")]
    assert apply_edits("a\nb\nc\n", edits) == "A\nB\nC\n"


def test_the_last_line_may_have_no_end():
    assert apply_edits("a\nb", [Edit("x.py", 2, 2, "b", "B\nC")]) == "a\nB\nC"
    assert apply_edits("a\r\nb\r\n", [Edit("x.py", 1, 1, "a", "A\nA")]) == "A\r\nA\r\nb\r\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BUG.encode(), MENDED.encode()),
        (codecs.BOM_UTF8 + BUG.encode(), codecs.BOM_UTF8 + MENDED.encode()),
        (BUG.replace("\n", "\r\n").encode(), MENDED.replace("\n", "\r\n").encode()),
        (
            ("# coding: latin-1\n" + BUG.replace("keep", "é")).encode("latin-1"),
            ("# coding: latin-1\n" + MENDED.replace("keep", "é")).encode("latin-1"),
        ),
    ],
    ids=["utf-8", "byte order mark", "windows line ends", "latin-1"],
)
def test_files_keep_their_encoding_and_line_ends(tmp_path, before, after):
    path = tmp_path / "a.py"
    path.write_bytes(before)
    (change,) = fix_files([tmp_path])
    assert path.read_bytes() == after
    assert change.file == str(path)
    assert fix_files([tmp_path]) == ()


def test_proposed_changes_write_nothing_and_show_a_diff(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(BUG)
    (tmp_path / "broken.py").write_text("import torch (\n")
    (change,) = proposed_changes([tmp_path])
    assert path.read_text() == BUG
    expected = difflib.unified_diff(BUG.splitlines(True), MENDED.splitlines(True), str(path), str(path))
    assert change.diff == "".join(expected)


def test_a_diff_says_where_a_last_line_has_no_end():
    assert Change("a.py", "a", "b").diff.endswith(
        "-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    )


def test_writing_keeps_permissions_and_links(tmp_path):
    path, link = tmp_path / "a.py", tmp_path / "link.py"
    path.write_text("x = 1\n")
    path.chmod(0o755)
    link.symlink_to(path)
    write(link, "x = 2\n")
    assert link.is_symlink()
    assert path.read_text() == "x = 2\n"
    assert path.stat().st_mode & 0o777 == 0o755
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.py", "link.py"]


@pytest.mark.parametrize(
    ("before", "text"), [("x = 1\n", "x = (\n"), ("# coding: ascii\nx = 1\n", "# coding: ascii\nx = 'é'\n")]
)
def test_what_would_be_no_python_is_not_written(tmp_path, before, text):
    path = tmp_path / "a.py"
    path.write_text(before)
    with pytest.raises(UsageError, match="nothing was written"):
        write(path, text)
    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.py"]


SCRIPT = textwrap.dedent(
    """\
    import sys
    from pathlib import Path

    import torch

    Path(sys.argv[1]).open("a").write(Path(__file__).parent.name)
    weights = torch.ones(3)
    x = torch.ones(3, device="cuda")
    print(x * weights)
    """
)


def test_a_script_is_run_mended_and_run_again(tmp_path):
    path, log = tmp_path / "train.py", tmp_path / "log"
    path.write_text(SCRIPT)
    result = fix_script(FixOptions(str(path), args=(str(log),), simulate="cuda"))
    assert (result.clean, result.written, result.left) == (True, True, ())
    assert len(result.made) == 1
    assert path.read_text() == result.change.after != SCRIPT
    assert log.read_text() == tmp_path.name * 2
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "train.py"]


def test_what_is_left_is_told_in_full(tmp_path):
    (tmp_path / "neighbour.py").write_text("import torch\ny = torch.ones(3)\nz = y + torch.ones(3, device='cuda')\n")
    path = tmp_path / "train.py"
    path.write_text("import torch\nimport neighbour\n")
    result = fix_script(FixOptions(str(path), simulate="cuda"))
    (finding,) = result.left
    assert (Path(finding.location.file).name, finding.location.line) == ("neighbour.py", 3)
    assert (finding.culprit.name, finding.culprit.shape, finding.expected_device) == ("y", (3,), "cuda:0")
    assert finding.raised.type == "RuntimeError"
    assert finding.reasons
    assert len(finding.operands) == 2


@pytest.mark.slow
def test_a_script_is_not_changed_where_it_is_only_looked_at(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    result = fix_script(FixOptions(str(path), args=(str(tmp_path / "log"),), simulate="cuda", write=False))
    assert result.clean
    assert not result.written
    assert path.read_text() == SCRIPT
    assert result.change.diff


@pytest.mark.slow
def test_a_script_that_fails_otherwise_is_left_alone(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("import torch\nraise ValueError('mine')\n")
    result = fix_script(FixOptions(str(path), simulate="cuda"))
    assert (result.clean, result.made, result.written) == (False, (), False)
    assert result.message == "the script fails for a reason of its own; `samedevice run` shows it"


def test_a_script_that_is_not_there_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        fix_script(FixOptions(str(Path(tmp_path) / "no.py")))
