"""Record what the CUDA devices of this machine answer: the tables that `tests/conformance` compares a simulation with.

    python scripts/record_answers.py expressions FILE [--every N]     as tests/conformance/expressions-cuda-2.13.tsv
    python scripts/record_answers.py operators FILE [--every N]       as tests/conformance/operators-cuda-2.13.tsv

The expressions are those of the tables that are there; the operators those of PyTorch's own database, with samples
chosen alike. Each expression runs in a process of its own, operators in one that is begun anew after a crash.
`--simulated` asks a simulated machine instead, to try the recording itself. Exit status 2 without two CUDA devices.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TABLES = HERE.parent / "tests" / "conformance"
_SAME = "Expected all tensors to be on the same device, but"
_MOST_LOOKED_AT, _MOST_ALIKE, _MOST_KEPT = 400, 2, 6
_HEADS = {
    "expressions": "# name\texpression (C(*shape, d=) is a tensor on CUDA, P(*shape) one on the CPU; "
    '";;" separates statements)\tthe answer of torch {version}',
    "operators": "# operator of op_db\tsample\tcase\targument\tdims\tresult\tdetail   (case: base = all on cuda:0, "
    "cpu1 = only this argument on the CPU, cuda1 = only this one on cuda:0)",
}


def load(name: str) -> Any:
    """A module of the conformance tests."""
    spec = importlib.util.spec_from_file_location(f"conformance_{name}", TABLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def devices_here() -> int:
    """How many CUDA devices there are; asked in a child, since a process that has asked cannot fork any more."""
    command = [sys.executable, "-c", "import torch; print(torch.cuda.device_count())"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout or 0)


def record_expressions(every: int, simulated: bool) -> Iterator[str]:
    """The rows of the expressions, in the order of the tables."""
    answers = load("answers")
    ask = answers.answer if simulated else answers.evaluate
    rows = [
        line.split("\t")[:2]
        for table in (answers.EXPRESSIONS, answers.MORE_EXPRESSIONS)
        for line in table.read_text(encoding="utf-8").splitlines()
        if "\t" in line and not line.startswith("#")
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, code in rows[::every]:
            yield f"{name}\t{code}\t{answers.in_child(ask, code, folder)[:420]}"


def record_operators(every: int, simulated: bool) -> Iterator[str]:
    """The rows of the operators; one that ends its process is written down as a crash, and the next process goes on."""
    command = [sys.executable, __file__, "operators", os.devnull, "--worker", *(["--simulated"] if simulated else [])]
    done = 0
    while True:
        worker = subprocess.Popen(
            [*command, "--every", str(every), "--from", str(done)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert worker.stdout is not None
        last: list[str] | None = None
        for line in worker.stdout:
            message = json.loads(line)
            if "row" in message:
                last = None
                done = message["number"] + 1
                yield message["row"]
            elif "asked" in message:
                last, number = message["asked"], message["number"]
        if worker.wait() == 0:
            return
        if last is None:
            raise SystemExit(
                f"record_answers: the worker ended with status {worker.returncode} before it asked anything."
            )
        done = number + 1
        yield "\t".join([*last, "CRASH"])


def work(every: int, begin: int, simulated: bool) -> None:
    """Ask the operators from row `begin` on, and say what is asked before it is."""
    import torch

    load("answers")
    placements = load("placements")
    for number, (name, index, sample, case, argument, dims) in enumerate(_placements(placements, every)):
        if number < begin:
            continue
        key = [name, str(index), case, str(argument), dims]
        print(json.dumps({"asked": key, "number": number}), flush=True)
        function = placements.operators()[name].op
        if simulated:
            import samedevice

            with samedevice.simulate("cuda:2"):
                place = placements.place_of(function)
                said = placements.ask(getattr(*place) if place else function, sample, case, argument)
        else:
            said = placements.ask(function, sample, case, argument)
            torch.cuda.synchronize()
        print(json.dumps({"row": "\t".join([*key, *_result(said)]), "number": number}), flush=True)


def _placements(placements: Any, every: int) -> Iterator[tuple[str, int, Any, str, int, str]]:
    """Each operator, sample and placement that is asked."""
    for name in list(placements.operators())[::every]:
        for index, sample, tensors in _samples(placements, name):
            dims = ",".join(_form(tensor) for tensor in tensors)
            yield name, index, sample, "base", -1, dims
            for case in ("cpu1", "cuda1")[: 1 if len(tensors) < 3 else 2]:
                for argument in range(len(tensors)):
                    yield name, index, sample, case, argument, dims


def _samples(placements: Any, name: str) -> Iterator[tuple[int, Any, list[Any]]]:
    """The first samples of an operator that differ in dimensions, emptiness and dtypes."""
    import torch
    from torch.utils import _pytree as pytree

    operator = placements.operators()[name]
    dtype = next((dtype for dtype in placements.DTYPES if dtype in operator.dtypes), None)
    torch.manual_seed(0)
    seen: Counter[Any] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index, sample in enumerate(operator.sample_inputs("cpu", dtype)):
            leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            pattern = tuple((t.dim() == 0, t.numel() == 0, t.dtype) for t in tensors)
            seen[pattern] += 1
            dense = all(tensor.layout is torch.strided for tensor in tensors)
            if tensors and dense and seen[pattern] <= _MOST_ALIKE:
                seen["kept"] += 1
                yield index, sample, tensors
            if index >= _MOST_LOOKED_AT or seen["kept"] >= _MOST_KEPT:
                return


def _form(tensor: Any) -> str:
    return f"n{tensor.dim()}" if tensor.dim() else "0d"


def _result(said: str) -> tuple[str, str]:
    """Result and detail: devices, a device error, or another."""
    if said.startswith("OK"):
        return "OK", said[3:]
    text = said[4:].replace(_SAME, "SAME-DEVICE")
    return "DEV" if "device" in text.lower() and "out of memory" not in text else "OTHER", text[:200]


def main() -> int:
    """Write the table; see above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=tuple(_HEADS))
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth expression or operator")
    parser.add_argument("--simulated", action="store_true", help="ask a simulated machine with two devices")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--from", type=int, default=0, dest="begin", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.every, options.begin, options.simulated)
        return 0
    if not options.simulated and (count := devices_here()) < 2:
        print(
            f"record_answers: needs a machine with two CUDA devices, and this one has {count}; nothing was written.",
            file=sys.stderr,
        )
        return 2
    record = record_expressions if options.what == "expressions" else record_operators
    import torch

    with options.file.open("w", encoding="utf-8") as out:
        print(_HEADS[options.what].format(version=torch.__version__), file=out)
        for row in record(options.every, options.simulated):
            print(row, file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
