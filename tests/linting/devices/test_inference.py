"""What the interpreter understands: the programs of found.txt have a fault, those of silent.txt have none."""

import re
import textwrap
from pathlib import Path

import pytest

from samedevice.linting.devices.method_tables import MOVES
from samedevice.linting.lint import lint_source

PREAMBLE = """\
import argparse, collections, copy, functools, os, types
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

here = torch.zeros(2, 2)
there = torch.zeros(2, 2, device="cuda")
"""


def programs(file):
    """The programs of a file by their headings."""
    parts = Path(__file__).with_name(file).read_text().split("\n## ")[1:]
    return [pytest.param(program, id=name) for name, _, program in (part.partition("\n") for part in parts)]


@pytest.mark.parametrize("program", programs("found.txt"))
def test_found(program):
    marked = [number for number, line in enumerate(program.splitlines(), 1) if line.endswith("# !")]
    findings = lint_source(PREAMBLE + program.replace("  # !", ""))
    assert [finding.location.line - PREAMBLE.count("\n") for finding in findings][:1] == marked


@pytest.mark.parametrize("program", programs("silent.txt"))
def test_silent(program):
    assert [finding.message for finding in lint_source(PREAMBLE + program)] == []


def findings_in(program, kind="cuda"):
    """The codes and lines found where a program's devices are of a kind; functions of `torch.cuda` stay."""
    text = re.sub(r"(?<!torch\.)\bcuda\b", kind, PREAMBLE + program)
    return [(finding.code, finding.location.line) for finding in lint_source(text)]


@pytest.mark.parametrize("kind", sorted(MOVES - {"cuda"}))
@pytest.mark.parametrize("file", ["found.txt", "silent.txt"])
def test_each_accelerator_is_treated_as_cuda_is(file, kind):
    moving = [each.values[0] for each in programs(file) if ".cuda(" in each.values[0]]
    assert len(moving) > 8
    for program in moving:
        assert findings_in(program, kind) == findings_in(program)


@pytest.mark.parametrize("kind", sorted(MOVES))
def test_the_kinds_of_devices_by_name(kind):
    """Where the code asks for a device, it knows what it does; which kind a tensor is on is known."""
    preamble = f"import torch\nthere = torch.zeros(2, device='{kind}:0')\nhere = torch.zeros(2)\n"
    silent = f"def f(x):\n    if x.is_{kind}:\n        return x + there\n    return x\nf(here)\n"
    certain = f"if there.is_{kind} and not here.is_{kind} and not there.is_cpu and here.is_cpu:\n    here + there\n"
    placed = f"torch.{kind}.set_device(rank)\nthere + torch.zeros(2).{kind}()\n"
    assert lint_source(preamble + silent) == lint_source(preamble + placed) == ()
    assert [finding.location.line for finding in lint_source(preamble + certain)] == [5]
    assert lint_source(preamble.replace(":0", ":1") + f"there + torch.zeros(2).{kind}(0)\n")


def test_a_program_of_every_kind_of_syntax_is_followed():
    program = textwrap.dedent(
        """
        import torch
        from torch import *
        from . import neighbour
        x: torch.Tensor
        y: int = 3
        async def f(a, /, b, *c, d=1, **e):
            async with a as b, b:
                async for i in b:
                    await i
            yield (yield from b)
        class A(metaclass=type):
            global g
            def __init__(self): self.x = self.y = torch.ones(2)
            @property
            def p(self): return self.x
            @p.setter
            def p(self, v): self.x = v
            def __setitem__(self, k, v): self.d[k] = v
        with open("f") as h, torch.no_grad(): pass
        while True:
            if y: break
            else: continue
        else: pass
        try: raise ValueError
        except (ValueError, TypeError) as e: pass
        else: pass
        finally: pass
        match y:
            case [1, *rest] if rest: z = torch.ones(2)
            case {"a": b, **r}: pass
            case A(x=1) | None: pass
            case _: pass
        del y
        assert x is not None, "?"
        x[..., None, 1:2:3, :] = {**{}, "a": 1}, {1, 2}, {k: v for k, v in {}}, {*()}
        x @= -x; x //= +x; x = not x or x and ~x
        lambda *a, k=1, **kw: (n := 2) if a else f"{x!r:>{y}}" "s"
        [[i for i in j if i] for j in x], (i async for i in x)
        print(*x, **x, sep="")
        a = b = c, *d = [1, 2, 3]
        A()[1] = 2
        """
    )
    assert lint_source(program) == ()


TYPED = """\
import torch
from torch import nn

class Typed:
    def __init__(self, tensor):
        self.tensor = tensor
    def to(self, *args):
        {to}

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(3))
    def forward(self, x):
        return x.tensor + self.bias

Layer().cuda()(Typed(torch.ones(3)).to("cuda"))
Layer().cuda()(Typed(torch.ones(3)))
"""


@pytest.mark.parametrize(
    ("to", "code"),
    [
        ("return self", "SD108"),
        ("return Typed(self.tensor)", "SD108"),
        ("return Typed(self.tensor.to(*args))", "SD101"),
        ("return Typed(**{name: value.to(*args) for name, value in vars(self).items()})", "SD101"),
    ],
)
def test_an_object_is_said_to_leave_a_tensor_only_where_its_to_does(found, to, code):
    assert found(TYPED.format(to=to)) == [(code, 15)]
