"""SD107 hardcoded-device."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD107",
    slug="hardcoded-device",
    summary=say('A fixed device, such as `.cuda()` or "cuda:0", stands where another device is in use.'),
    why=say(
        "`.cuda()` means the current CUDA device, cuda:0 unless it was changed. A script that lets its user "
        "choose the device, or that runs on the second GPU, then has tensors on two devices."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html#device-agnostic-code",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

device = torch.device("cuda:1")
model = nn.Linear(4, 2).to(device)
images = torch.rand(8, 4).cuda()  # !
print(model(images).shape)
""",
            right="""\
import torch
from torch import nn

device = torch.device("cuda:1")
model = nn.Linear(4, 2).to(device)
images = torch.rand(8, 4).to(device)
print(model(images).shape)
""",
            devices=2,
        ),
    ),
    clean=(
        """\
import torch
from torch import nn

model = nn.Linear(4, 2).cuda()
images = torch.rand(8, 4).cuda()
print(model(images).shape)
""",
    ),
    fix_safety=say("Safe: with the device that the fixed one named, nothing changes."),
)
