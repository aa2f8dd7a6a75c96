import textwrap

import pytest

from samedevice.config import Config
from samedevice.fixing import fix_text
from samedevice.linting.lint import lint_source
from samedevice.linting.silencing import comments_in

BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.numpy(){comment}\n'


@pytest.mark.parametrize(
    "comment",
    [
        "  # noqa",
        "  # NOQA",
        "  # noqa: SD112",
        "  # noqa:SD112,E501",
        "  # noqa: E501, SD112",
        "  # noqa: E501 SD112",
        "  # noqa: SD1",
        "  # samedevice: ignore",
        "  # samedevice: ignore[SD112]",
        "  # samedevice: ignore[numpy-on-cuda]",
        "  # a reason first  # noqa: SD112",
        "  # noqa: SD112 and a reason after it",
        "  # samedevice: ignore-file[SD112]",
        "\n# samedevice: ignore-file",
    ],
)
def test_a_comment_silences(found, comment):
    assert found(BUG.format(comment=comment)) == []


@pytest.mark.parametrize("comment", ["  # noqa: E501", "  # noqatall", ""])
def test_a_comment_for_something_else_does_not(found, comment):
    assert found(BUG.format(comment=comment)) == [("SD112", 3)]


def test_text_that_looks_like_a_comment_does_not(found):
    assert found('import torch\nx = torch.zeros(3, device="cuda"); y = (x.numpy(), "# noqa")\n') == [("SD112", 2)]


def test_any_line_of_the_flagged_expression_counts(found):
    text = 'import torch\nx = torch.zeros(3, device="cuda")\ny = (\n    x  # noqa: SD112\n    .numpy()\n)\n'
    assert found(text) == []
    assert found(text.replace("  # noqa: SD112", "")) == [("SD112", 4)]


def test_where_a_comment_is_and_what_it_says():
    (comment,) = comments_in("f(\n    x,  # why  # noqa: SD101, E501 because\n)\n")
    assert (comment.line, comment.column, comment.codes, comment.own) == (2, 15, ("sd101", "e501"), False)
    assert comment.text == "# noqa: SD101, E501"


UNUSED = """\
import torch
x = torch.zeros(3)
y = x + 1{comment}
z = 1
"""


@pytest.mark.parametrize(
    ("comment", "message", "left"),
    [
        ("  # noqa: SD112", "`SD112` silences nothing here", ""),
        ("  # noqa: SD112, E501", "`SD112` silences nothing here", "  # noqa: E501"),
        ("  # noqa: E501,SD112", "`SD112` silences nothing here", "  # noqa: E501"),
        ("  # noqa: SD112, SD101", "`SD112` and `SD101` silence nothing here", ""),
        ("  # why  # noqa: SD112", "`SD112` silences nothing here", "  # why"),
        ("  # noqa: SD112 as it was", "`SD112` silences nothing here", "  # as it was"),
        ("  # type: ignore # noqa: SD112", "`SD112` silences nothing here", "  # type: ignore"),
        ("  # samedevice: ignore[numpy-on-cuda]", "`numpy-on-cuda` silences nothing here", ""),
        ("  # samedevice: ignore[SD112, SD1]", "`SD112` and `SD1` silence nothing here", ""),
        ("  # samedevice: ignore[numpy-on-cud]", "`numpy-on-cud` silences nothing here", ""),
        ("\n# samedevice: ignore-file[SD2]", "`SD2` silences nothing here", ""),
    ],
)
def test_a_comment_that_silences_nothing_is_reported_and_taken_away(comment, message, left):
    text = UNUSED.format(comment=comment)
    (finding,) = lint_source(text)
    assert (finding.code, finding.severity, finding.message) == ("SD901", "warning", message)
    line = text.splitlines()[finding.location.line - 1]
    assert line[finding.location.column - 1 :].startswith("#")
    assert fix_text(text) == UNUSED.format(comment=left)


@pytest.mark.parametrize(
    "comment",
    [
        "  # noqa",
        "  # noqa: E501",
        "  # noqa: SD999",
        "  # noqa: SD112, SD901",
        "  # noqa: SD301",
        "  # samedevice: ignore[SD112, SD901]",
    ],
)
def test_what_may_be_needed_is_left_alone(comment):
    assert lint_source(UNUSED.format(comment=comment)) == ()


@pytest.mark.parametrize(
    "config",
    [
        Config(select=("SD2", "SD9")),
        Config(ignore=("SD112",)),
        Config(ignore=("SD901",)),
        Config(per_file_ignores={"a.py": ("SD1",)}),
        Config(select=("SD112",)),
    ],
)
def test_only_what_was_looked_for_is_unused(config):
    assert lint_source(UNUSED.format(comment="  # noqa: SD112"), "a.py", config=config) == ()


def test_smells_are_looked_for_where_they_are_selected():
    text = UNUSED.format(comment="  # noqa: SD301")
    assert [f.code for f in lint_source(text, config=Config(extend_select=("smells",)))] == ["SD901"]


def test_one_code_of_two_may_be_needed():
    text = BUG.format(comment="  # noqa: SD112, SD101")
    (finding,) = lint_source(text)
    assert finding.message == "`SD101` silences nothing here"
    assert fix_text(text) == BUG.format(comment="  # noqa: SD112")


def test_a_comment_line_between_others_goes_whole():
    text = textwrap.dedent(
        """
        import torch
        if torch:
        \t# noqa: SD105
        \tx = torch.zeros(3)
        """
    )
    assert fix_text(text) == text.replace("\t# noqa: SD105\n", "")
