"""The operators of torch.testing's op_db on a simulated machine, one tensor argument at a time elsewhere.

The samples are chosen as they were for the recording: seed 0 before each operator, float32 or else the first dtype
that it has, by the sample's index in the table.
"""

from __future__ import annotations

import functools
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree

import samedevice

_answers = sys.modules["conformance_answers"]
DTYPES = (torch.float32, torch.int64, torch.complex64, torch.bool)


@functools.cache
def operators() -> dict[str, Any]:
    """The operators of op_db by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""): op for op in op_db}


@functools.cache
def _table() -> dict[str, dict[tuple[int, str, int], tuple[str, str]]]:
    rows: dict[str, dict[tuple[int, str, int], tuple[str, str]]] = defaultdict(dict)
    for line in _answers.OPERATORS.read_text(encoding="utf-8").splitlines()[1:]:
        name, sample, case, argument, _, result, *detail = line.split("\t")
        rows[name][int(sample), case, int(argument)] = (result, detail[0] if detail else "")
    return dict(rows)


def names() -> list[str]:
    """The operators in the table."""
    return list(_table())


def differences(chosen: Iterable[str]) -> list[Any]:
    """Where our answers depart: raise or pass, result devices, or the class of message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [found for name in chosen for found in _differences(name)]


def _differences(name: str) -> Iterator[Any]:
    op, rows = operators()[name], _table()[name]
    wanted = {sample for sample, _, _ in rows}
    torch.manual_seed(0)
    dtype = next((dtype for dtype in DTYPES if dtype in op.dtypes), None)
    samples = {}
    for index, sample in enumerate(op.sample_inputs("cpu", dtype)):
        if index in wanted:
            samples[index] = sample
        if index >= max(wanted):
            break
    place = place_of(op.op)
    with samedevice.simulate("cuda:2"):
        function = getattr(*place) if place else op.op
        for (index, case, argument), (result, detail) in rows.items():
            if index in samples and result in ("OK", "DEV") and rows.get((index, "base", -1), ("",))[0] == "OK":
                ours = ask(function, samples[index], case, argument)
                step = _step(result, detail, ours)
                if step:
                    key = f"{name} {index} {case} {argument}"
                    yield _answers.Difference(key, step, f"{result} {detail}", ours)


def place_of(function: Any) -> tuple[Any, str] | None:
    """Where a person would find the function: op_db took hold of it before the simulation put its checks there."""
    for owner in (torch, torch.linalg, torch.nn.functional, torch.special, torch.fft, torch.Tensor):
        for name in dir(owner):
            if getattr(owner, name, None) is function:
                return owner, name
    return None


def ask(function: Any, sample: Any, case: str, argument: int) -> str:
    """What an operator says: case "base", all on cuda:0; "cpu1" and "cuda1", one argument on the CPU or the only one on
    cuda:0.
    """
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    for number, i in enumerate(places):
        there = case == "base" or (number == argument) == (case == "cuda1")
        copy = leaves[i].detach().clone()
        leaves[i] = copy.to("cuda:0") if there else copy
    value, args, kwargs = pytree.tree_unflatten(leaves, spec)
    try:
        out = function(value, *args, **kwargs)
    except Exception as error:
        return f"EXC {type(error).__name__}: {error}".split("\n")[0]
    return "OK " + ",".join(str(leaf.device) for leaf in pytree.tree_leaves(out) if isinstance(leaf, torch.Tensor))


def _step(result: str, detail: str, ours: str) -> str:
    if (result == "OK") != ours.startswith("OK"):
        return "outcome"
    if result == "OK":
        return "" if ours == f"OK {detail}" else "devices"
    return "" if _message_class(detail) == _message_class(ours) else "class of message"


def _message_class(text: str) -> str:
    """The generated check, TensorIterator, or the operator's own words."""
    if "found at least two devices" in text:
        return "iterator"
    return "generated" if re.search(r"got \w+ is on", text) else "own"
