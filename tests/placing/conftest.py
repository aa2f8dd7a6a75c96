"""What the tests of moving share."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "moving.md"


@pytest.fixture
def documented_rows():
    """The rows of the first table under a heading of docs/moving.md, as tuples of their cells."""

    def rows(heading):
        _, _, section = DOCUMENT.read_text(encoding="utf-8").partition(f"### {heading}\n")
        lines = section.partition("\n#")[0].splitlines()
        table = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
        return [tuple(cell.strip() for cell in row) for row in table[2:]]

    return rows
