"""What a simulated machine answers, held beside what the CUDA build of PyTorch answered.

The tables hold expressions, or operators with one argument elsewhere, and the recorded answer: result devices, or
exception and text. What hangs on values is left out, since the recording machine's kernels computed none.
Run as a script it answers the expressions that change the process, each in a child of its own, as JSON.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

import samedevice

HERE = Path(__file__).parent
EXPRESSIONS = HERE / "expressions-cuda-2.13.tsv"
MORE_EXPRESSIONS = HERE / "more-expressions-cuda-2.13.tsv"
OPERATORS = HERE / "operators-cuda-2.13.tsv"
DIFFERENCES = HERE / "differences.tsv"

# Answers that hang on values, hardware or NCCL, or are not about devices.
_NOT_COMPARABLE = re.compile(
    r"CRASH|NCCL|CUDNN_|OutOfMemory|Tried to allocate|expects std|Invalid learning|can not be negative|SyntaxError|"
    r"sm_\d|object at 0x|Expected value argument|ModuleNotFound|<function|<module|Categorical|constraint|"
    r"_CudaDeviceProperties"
)
_READS_VALUES = re.compile(r"item\(|tolist|float\(|int\(|print|repr|str\(")
# These change the process for good, or need a process of their own.
CHANGES_PROCESS = re.compile(
    r"backends|set_|init_process|DataLoader|load\(|save\(|__enter__|enter_dual_level|swap_tensors|exec|compile|DataParallel|manual_seed"
)
_DEVICE = re.compile(r"T\[([^\]]*)\]|device\(type='(\w+)'(?:, index=(\d+))?\)")
_PLACES = re.compile(r"0x[0-9a-f]+|/\S+\.(cpp|h|cu|cuh|py):\d+|\bat \"[^\"]*\"|File \"[^\"]*\"|/\S+\.py\(\d+\)")
"""What texts say of addresses and lines of PyTorch's own files."""
# The recorded answers are those that hang on no value: P's are the same every time.
_PRELUDE = """
import io, os
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
def C(*s, dtype=torch.float32, d='cuda:0'): return torch.zeros(s, dtype=dtype, device=d)
def P(*s, dtype=torch.float32):
    return torch.zeros(s, dtype=dtype) if not dtype.is_floating_point else torch.rand(s, dtype=dtype)
L = torch.long
torch.manual_seed(0)
"""


@dataclass(frozen=True)
class Row:
    key: str
    code: str
    recorded: str


@dataclass(frozen=True)
class Difference:
    key: str
    step: str
    recorded: str
    ours: str

    def __str__(self) -> str:
        return f"{self.key}: {self.step} differs\n    CUDA {self.recorded[:200]}\n    ours {self.ours[:200]}"


def expressions(table: Path = EXPRESSIONS) -> Iterator[Row]:
    """The comparable expressions; the expression is the key."""
    seen = set()
    for line in table.read_text(encoding="utf-8", errors="replace").split("\n"):
        parts = line.split("\t")
        if line.startswith("#") or len(parts) < 3 or parts[1] in seen:
            continue
        seen.add(parts[1])
        readable = parts[2].startswith("OK") and _READS_VALUES.search(parts[1])
        if not readable and not _NOT_COMPARABLE.search(parts[2]):
            yield Row(parts[1], parts[1], parts[2])


def explained() -> dict[str, str]:
    """Pattern of a key -> why our answer differs there."""
    lines = DIFFERENCES.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


def is_explained(key: str) -> bool:
    return any(key == pattern or fnmatch.fnmatchcase(key, pattern) for pattern in explained())


def answer(code: str) -> str:
    """What an expression gives in this process, on a simulated machine with two devices."""
    with samedevice.simulate("cuda:2"):
        return evaluate(code)


def evaluate(code: str) -> str:
    """What an expression gives in this process, on the devices that it has."""
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(_PRELUDE, names)
            *before, last = [part.strip() for part in code.split(";;")]
            for part in before:
                exec(part, names)
            return "OK " + _shown(eval(last, names))
        except Exception as error:
            return f"EXC {type(error).__name__}: {str(error).strip()}".replace("\n", " // ")


def _shown(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"T[{value.device}]"
    if isinstance(value, list | tuple):
        return type(value).__name__ + "(" + ", ".join(map(_shown, value)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}:{_shown(item)}" for key, item in value.items()) + "}"
    return repr(value)


def difference(row: Row, ours: str) -> Difference | None:
    """The first step in which `ours` departs: outcome, devices, words; None where it agrees in all."""
    if row.recorded[:3] != ours[:3]:
        return Difference(row.key, "outcome", row.recorded, ours)
    if row.recorded.startswith("OK"):
        if _devices(row.recorded) != _devices(ours):
            return Difference(row.key, "devices", row.recorded, ours)
    elif _words(row.recorded) != _words(ours):
        return Difference(row.key, "words", row.recorded, ours)
    return None


def _devices(text: str) -> list[str]:
    return [m[1] or (m[2] + (f":{m[3]}" if m[3] else "")) for m in _DEVICE.finditer(text)]


def _words(text: str) -> str:
    text = _PLACES.sub("…", text.replace(" // ", " "))
    return re.sub(r"\s+", " ", text).strip().rstrip(".")[:160]


def in_child(ask: Callable[[str], str], code: str, folder: str) -> str:
    """What `ask(code)` says in a forked child, which works in `folder` and has a minute."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(60)
        os.chdir(folder)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        with os.fdopen(writer, "w", errors="replace") as out:
            out.write(ask(code))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, errors="replace") as text:
        said = text.read()
    _, status = os.waitpid(child, 0)
    return said or f"CRASH status {status}"


def main() -> None:
    torch.set_num_threads(1)
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        for row in (*expressions(), *expressions(MORE_EXPRESSIONS)):
            if CHANGES_PROCESS.search(row.code):
                answers[row.key] = in_child(answer, row.code, folder)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
