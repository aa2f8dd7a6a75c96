"""What a person has said of findings in released packages: a table that is whole, and that the documentation tells."""

import csv
import re
from pathlib import Path

from samedevice.causes.catalogue import NAMES

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "benchmarks" / "lint_precision" / "verdicts.tsv"


def rows():
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_each_verdict_is_whole_and_there_once():
    for row in rows():
        assert row["verdict"] in ("true", "false")
        assert row["code"] in NAMES
        assert all(row.values())
    places = [tuple(row[name] for name in ("package", "version", "file", "line", "code")) for row in rows()]
    assert len(set(places)) == len(places)


def test_the_documentation_counts_what_the_table_holds():
    text = " ".join((ROOT / "docs" / "linting.md").read_text(encoding="utf-8").split())
    told = re.search(r"Of (\d+) findings (\d+) are true and (\d+) (?:is a false alarm|are false alarms)", text)
    verdicts = [row["verdict"] for row in rows()]
    assert told is not None
    assert [int(number) for number in told.groups()] == [
        len(verdicts),
        verdicts.count("true"),
        verdicts.count("false"),
    ]
