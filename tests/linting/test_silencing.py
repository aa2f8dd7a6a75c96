import pytest

from samedevice.linting.silencing import silenced, silencing_comments

BUG = 'import torch\nx = torch.zeros(3, device="cuda")\ny = x.numpy(){comment}\n'


@pytest.mark.parametrize(
    "comment",
    [
        "  # noqa",
        "  # NOQA",
        "  # noqa: SD112",
        "  # noqa: E501, SD112",
        "  # noqa: SD1",
        "  # samedevice: ignore",
        "  # samedevice: ignore[SD112]",
        "  # samedevice: ignore[numpy-on-cuda]",
        "  # a reason first  # noqa: SD112",
    ],
)
def test_a_comment_on_the_line_silences(found, comment):
    assert found(BUG.format(comment=comment)) == []


@pytest.mark.parametrize("comment", ["  # noqa: E501", "  # samedevice: ignore[SD103]", "  # noqatall", ""])
def test_a_comment_for_something_else_does_not(found, comment):
    assert found(BUG.format(comment=comment)) == [("SD112", 3)]


def test_text_that_looks_like_a_comment_does_not(found):
    assert found('import torch\nx = torch.zeros(3, device="cuda"); y = (x.numpy(), "# noqa")\n') == [("SD112", 2)]


def test_any_line_of_the_flagged_expression_counts():
    comments = silencing_comments("f(\n    x,  # noqa: SD101\n)\n")
    assert comments == {2: frozenset({"sd101"})}
    assert silenced(comments, range(1, 4), "SD101", "input-not-moved")
    assert not silenced(comments, range(3, 4), "SD101", "input-not-moved")
