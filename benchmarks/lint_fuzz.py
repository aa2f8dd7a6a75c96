"""Lint whatever there is, whole and broken: no file may make the linter fail, or take it long.

    python benchmarks/lint_fuzz.py FOLDER … [--variants N] [--seed N]

Each file is linted as it is, with `import torch` so that it is looked into at all, and in N broken variants: cut short,
lines lost, doubled and exchanged, bytes changed, expressions put in place of names. Findings do not matter; a variant
that does not parse must be an error of that file. Exits with 1 where the linter failed or took too long.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from samedevice.config import Config
from samedevice.linting.lint import lint_bytes

LONGEST = 20.0
"""Seconds of CPU that a file may take."""
IMPORT = b"\nimport torch; from torch import nn\n"
EXPRESSIONS = (
    b"torch.zeros(3)", b"self", b"(lambda: x)", b"[x for x in y]", b"{**x}", b"x[...]", b"nn.Linear(1, 1)", b"x.cuda()",
    b"model", b"super()", b"(1 if x else y)", b"torch", b"nn.Module", b"optimizer", b"(*x, *x)", b"'cuda'",
)  # fmt: skip
NAME = re.compile(rb"(?<![\w.])[a-z_]\w*(?=[(.\[ ),])")


def variants(data: bytes, number: int, chance: random.Random) -> Iterator[bytes]:
    """The file itself, able to hold tensors, and `number` broken ones."""
    yield data + IMPORT
    for _ in range(number):
        yield chance.choice((_cut, _lines_changed, _bytes_changed, _names_changed))(data, chance) + IMPORT


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _lines_changed(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    for _ in range(chance.randrange(1, 6)):
        first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
        change = chance.choice(("lost", "doubled", "exchanged"))
        if change == "exchanged":
            lines[first], lines[second] = lines[second], lines[first]
        else:
            lines[first] *= 2 if change == "doubled" else 0
    return b"".join(lines)


def _bytes_changed(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data or b"x")
    for _ in range(chance.randrange(1, 4)):
        changed[chance.randrange(len(changed))] = chance.choice((0, 9, 10, 13, 34, 40, 58, 92, 128, 255))
    return bytes(changed)


def _names_changed(data: bytes, chance: random.Random) -> bytes:
    return NAME.sub(lambda match: chance.choice(EXPRESSIONS) if chance.random() < 0.02 else match[0], data)


def main() -> int:
    """Lint all variants and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--variants", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    print("| files | files | variants | linted | named as unreadable | the linter failed | longest, s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    wrong = 0
    for folder in options.folders:
        came = Counter[str]()
        longest = 0.0
        files = sorted(path for path in folder.rglob("*.py") if path.is_file())
        for file in files:
            for data in variants(file.read_bytes(), options.variants, chance):
                begun = time.process_time()
                errors = lint_bytes(data, str(file), config=Config(), cache=None).errors
                took = time.process_time() - begun
                longest = max(longest, took)
                said = "".join(error.message for error in errors)
                came["failed" if "the linter failed" in said else "unreadable" if errors else "linted"] += 1
                if "the linter failed" in said or took > LONGEST:
                    print(f"{file}: {took:.1f} s {said}", file=sys.stderr)
                    wrong += 1
        print(
            f"| {folder.name} | {len(files):,} | {came.total():,} | {came['linted']:,} | {came['unreadable']:,} | "
            f"{came['failed']} | {longest:.1f} |",
            flush=True,
        )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
