"""SD303 scattered-availability."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD303",
    slug="scattered-availability",
    summary=say("`torch.cuda.is_available()` is asked in more than one place of a file."),
    why=say(
        "Each place chooses a device for itself, and they come apart when one of them is changed. Choose the "
        "device once, and hand it on."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html#device-agnostic-code",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn


def make_model():
    model = nn.Linear(4, 2)
    return model.to("cuda") if torch.cuda.is_available() else model


def make_batch():
    return torch.rand(3, 4, device="cuda" if torch.cuda.is_available() else "cpu")  # !


print(make_model()(make_batch()).shape)
""",
            right="""\
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_model():
    return nn.Linear(4, 2).to(device)


def make_batch():
    return torch.rand(3, 4, device=device)


print(make_model()(make_batch()).shape)
""",
        ),
    ),
    clean=(
        """\
import unittest

import torch


class Tests(unittest.TestCase):
    @unittest.skipUnless(torch.cuda.is_available(), "needs CUDA")
    def test_one(self): ...

    @unittest.skipUnless(torch.cuda.is_available(), "needs CUDA")
    def test_two(self): ...
""",
    ),
    fix_safety=say("No edit is made."),
    not_run=say("it is no fault: a run does what was meant"),
    not_fixed=say("where the device is to be chosen, and what it is to be called, is for a person to say"),
)
