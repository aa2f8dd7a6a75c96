"""SD302 device-literal."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD302",
    slug="device-literal",
    summary=say('A numbered device, such as "cuda:0", is written down.'),
    why=say(
        '"cuda:0" is the first GPU that is visible, also where the user has chosen another one by '
        '`torch.cuda.set_device`. "cuda" is the current one. Where several numbers are named in a file, they are '
        "taken to be meant."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-semantics",
    examples=(
        Example(
            wrong="""\
import torch

weights = torch.ones(4, device="cuda:0")  # !
print(weights.sum())
""",
            right="""\
import torch

weights = torch.ones(4, device="cuda")
print(weights.sum())
""",
        ),
    ),
    clean=(
        """\
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda:0")
options = parser.parse_args([])
print(torch.ones(4, device=options.device).device)
""",
        """\
import torch

first = torch.ones(4, device="cuda:0")
second = torch.ones(4, device="cuda:1")
print(first + second.to("cuda:0"))
""",
    ),
    fix_safety=say("Unsafe: after `torch.cuda.set_device` the current device is another one than the first."),
    not_run=say("it is no fault: a run does what was meant"),
)
