"""How long linting takes: the linter's CPU time beside `ast.parse` of the same files.

    python benchmarks/lint.py [PACKAGE …] [--findings] [--runs PACKAGE] [--torchfix PYTHON]

The packages are installed ones, by import name. Both are timed in one process, file after file, so that a busy moment
of the machine meets both; files that do not mention torch are read and passed by, as `samedevice lint` does.
`--findings` prints what was found, to be read by a person: on a released package most of it should be true. `--runs`
says which package whole runs of the command are timed on (see lint_runs.py), `--torchfix` which Python has TorchFix.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from lint_runs import print_runs

from samedevice.config import Config
from samedevice.findings import Finding
from samedevice.linting.lint import lint_bytes, lint_source

DEFAULT = ("torch_geometric", "tensordict", "accelerate", "ignite", "lightning_fabric")
AIM = 8.0
"""CPU time at most this many times that of parsing."""


@dataclass
class Row:
    """What was measured for one package."""

    files: int = 0
    lines: int = 0
    parsing: float = 0.0
    linting: float = 0.0
    slowest: tuple[float, str] = (0.0, "")
    findings: list[Finding] = field(default_factory=list)
    errors: int = 0


def folder_of(package: str) -> Path | None:
    """Where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def measure(folder: Path) -> Row:
    """Parse and lint every file below `folder`."""
    row, config = Row(), Config()
    for path in sorted(folder.rglob("*.py")):
        data = path.read_bytes()
        row.files += 1
        row.lines += data.count(b"\n")
        row.parsing += timed_parse(data)
        start = time.process_time()
        linted = lint_bytes(data, str(path), config=config)
        taken = time.process_time() - start
        row.linting += taken
        row.findings += linted.findings
        row.errors += len(linted.errors)
        row.slowest = max(row.slowest, (taken, path.name))
    return row


def timed_parse(data: bytes) -> float:
    """CPU seconds of `ast.parse`."""
    start = time.process_time()
    with contextlib.suppress(SyntaxError, ValueError):
        ast.parse(data)
    return time.process_time() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=list(DEFAULT))
    parser.add_argument("--findings", action="store_true")
    parser.add_argument("--runs", default="accelerate", metavar="PACKAGE")
    parser.add_argument("--torchfix", metavar="PYTHON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lint_source("import torch\n")  # the linter's own imports are no part of it
    print(
        f"{'package':<20}{'files':>7}{'lines':>10}{'parse s':>9}{'lint s':>8}{'ratio':>7}{'findings':>10}  slowest file"
    )
    for package in options.packages:
        folder = folder_of(package)
        if folder is None:
            print(f"{package:<20} not installed")
            continue
        row = measure(folder)
        ratio = row.linting / row.parsing if row.parsing else 0.0
        print(
            f"{package:<20}{row.files:>7}{row.lines:>10}{row.parsing:>9.2f}{row.linting:>8.2f}{ratio:>7.1f}"
            f"{len(row.findings):>10}  {row.slowest[1]} {row.slowest[0]:.2f} s"
        )
        for finding in row.findings if options.findings else ():
            print(f"  {finding.location.file}:{finding.location.line} {finding.code} {finding.message}")
    print(f"aim: ratio at most {AIM:g}")
    folder = folder_of(options.runs)
    if folder is not None:
        print(f"whole runs on {options.runs}")
        print_runs(folder, options.torchfix)


if __name__ == "__main__":
    main()
