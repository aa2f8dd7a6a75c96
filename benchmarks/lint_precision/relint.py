"""Lint released packages and compare what is found with what a person has read: `verdicts.tsv`.

    pip install --no-deps --target /tmp/packages timm diffusers …
    python benchmarks/lint_precision/relint.py --under /tmp/packages [PACKAGE …]

Without `--under`, the packages of this environment are linted. For each: lines, findings, how many of them were judged
true or false, and those without a verdict, with their source. A verdict whose finding is gone is named, too. The exit
status is 1 where the aims are missed or a finding has no verdict.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from samedevice.config import Config
from samedevice.linting.lint import lint_bytes

VERDICTS = Path(__file__).with_name("verdicts.tsv")
AIM_TRUE = 0.95
AIM_LINES = 20_000
"""At most one false alarm in so many lines."""

Place = tuple[str, str, str, int, str]
"""Package, version, file, line and code."""


@dataclass
class Row:
    """What was found in one package."""

    package: str
    version: str
    lines: int = 0
    errors: int = 0
    found: dict[Place, str] = field(default_factory=dict)
    """Each finding with its message and line of code."""


def verdicts(path: Path = VERDICTS) -> dict[Place, str]:
    """What was judged: "true" or "false" for each finding."""
    with path.open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {
            (row["package"], row["version"], row["file"], int(row["line"]), row["code"]): row["verdict"] for row in rows
        }


def lint_package(distribution: metadata.Distribution) -> Row:
    """Lint every source file of a package."""
    row, config = Row(distribution.name, distribution.version), Config()
    for entry in distribution.files or ():
        path = Path(str(entry.locate()))
        if path.suffix != ".py" or not path.is_file():
            continue
        data = path.read_bytes()
        row.lines += data.count(b"\n")
        linted = lint_bytes(data, str(path), config=config)
        row.errors += len(linted.errors)
        for finding in linted.findings:
            assert finding.location is not None
            place = (row.package, row.version, str(entry), finding.location.line, finding.code)
            row.found[place] = f"{finding.message}\n        {finding.location.source}"
    return row


def packages(under: Path | None, names: Iterable[str]) -> Iterator[metadata.Distribution]:
    """The distributions in a folder, or in this environment."""
    wanted = {name.lower().replace("_", "-") for name in names}
    path = [str(under)] if under is not None else sys.path
    for distribution in sorted(metadata.distributions(path=path), key=lambda each: each.name.lower()):
        if not wanted or distribution.name.lower().replace("_", "-") in wanted:
            yield distribution


def report(rows: list[Row], judged: dict[Place, str]) -> bool:
    """Print the table and what is new or gone; True where all aims are met."""
    print(f"{'package':<28}{'version':<14}{'lines':>10}{'findings':>10}{'true':>6}{'false':>7}{'new':>5}")
    total: Counter[str] = Counter()
    for row in rows:
        counts = Counter(judged.get(place, "new") for place in row.found)
        total += counts
        print(
            f"{row.package:<28}{row.version:<14}{row.lines:>10}{len(row.found):>10}"
            f"{counts['true']:>6}{counts['false']:>7}{counts['new']:>5}"
        )
        for place, text in row.found.items():
            if place not in judged:
                print(f"    new: {place[2]}:{place[3]} {place[4]} {text}")
    seen = {(row.package, row.version) for row in rows}
    found = {place for row in rows for place in row.found}
    for place, verdict in judged.items():
        if place[:2] in seen and place not in found:
            print(f"    gone ({verdict}): {' '.join(map(str, place))}")
    lines, alarms = sum(row.lines for row in rows), total["false"]
    share = total["true"] / max(1, total["true"] + alarms)
    print(f"{lines} lines, {total['true']} true, {alarms} false ({share:.1%} true), {total['new']} without a verdict")
    return not total["new"] and share >= AIM_TRUE and alarms * AIM_LINES <= lines


def main() -> int:
    """Lint, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--under", type=Path, help="a folder made by `pip install --target`")
    options = parser.parse_args()
    rows = [row for each in packages(options.under, options.packages) if (row := lint_package(each)).lines]
    return 0 if report(rows, verdicts()) else 1


if __name__ == "__main__":
    sys.exit(main())
