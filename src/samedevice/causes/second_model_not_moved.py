"""SD119 second-model-not-moved."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD119",
    slug="second-model-not-moved",
    summary=say("A second model (teacher, average, target network) was left behind when the first was moved."),
    why=say(
        "Each model is moved for itself. A copy made before the move stays on the CPU, and so does a model "
        "kept in a list or in a plain object."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html",
    examples=(
        Example(
            wrong="""\
import copy

import torch
from torch import nn

student = nn.Linear(4, 2)
teacher = copy.deepcopy(student)
student.to("cuda")
x = torch.rand(8, 4, device="cuda")
print((student(x) - teacher(x)).pow(2).mean())  # !
""",
            right="""\
import copy

import torch
from torch import nn

student = nn.Linear(4, 2)
teacher = copy.deepcopy(student).to("cuda")
student.to("cuda")
x = torch.rand(8, 4, device="cuda")
print((student(x) - teacher(x)).pow(2).mean())
""",
        ),
    ),
    clean=(
        """\
import copy

import torch
from torch import nn

student = nn.Linear(4, 2).to("cuda")
teacher = copy.deepcopy(student)  # a copy of what is on the accelerator is there too
x = torch.rand(8, 4, device="cuda")
print((student(x) - teacher(x)).pow(2).mean())
""",
    ),
    fix_safety=say("Safe where the device has room for both."),
)
