"""Programs in many styles: the fault is found in each, and what is right instead is let pass."""

from pathlib import Path

import pytest

from samedevice.linting.lint import lint_source

PREAMBLE = """\
import argparse, collections, copy, functools
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

"""
FILE = Path(__file__).with_name("programs.txt")
PROGRAMS = [part.partition("\n")[::2] for part in FILE.read_text().split("\n## ")[1:]]


def wrong(program):
    """The program with its fault, and the lines at which that may be reported."""
    lines = program.splitlines()
    marked = [number for number, line in enumerate(lines, 1) if "  # !" in line]
    return "\n".join(line.partition("  # !")[0].partition("  # =>")[0] for line in lines), marked


def right(program):
    """The program as it should be."""
    lines = []
    for line in program.splitlines():
        code, _, comment = line.partition("  # ")
        indent = code[: len(code) - len(code.lstrip())]
        lines.append(indent + comment.partition("=> ")[2] if "=> " in comment else code)
    return "\n".join(lines)


@pytest.mark.parametrize("program", [pytest.param(text, id=name) for name, text in PROGRAMS])
def test_found(program):
    text, marked = wrong(program)
    lines = [finding.location.line - PREAMBLE.count("\n") for finding in lint_source(PREAMBLE + text)]
    assert lines
    assert set(lines) <= set(marked)


@pytest.mark.parametrize("program", [pytest.param(text, id=name) for name, text in PROGRAMS])
def test_silent(program):
    assert [finding.message for finding in lint_source(PREAMBLE + right(program))] == []
