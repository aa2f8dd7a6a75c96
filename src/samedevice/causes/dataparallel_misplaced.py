"""SD116 dataparallel-misplaced."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD116",
    slug="dataparallel-misplaced",
    summary=say("A parallel wrapper's module is not on the device that the wrapper starts from."),
    why=say(
        "`DataParallel` copies the module from `device_ids[0]` to the others at each call, so that is where "
        "its parameters have to be. Inputs it moves by itself."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

model = nn.DataParallel(nn.Linear(4, 2))
print(model(torch.rand(8, 4, device="cuda")).shape)  # !
""",
            right="""\
import torch
from torch import nn

model = nn.DataParallel(nn.Linear(4, 2)).to("cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
            devices=2,
        ),
    ),
    clean=(
        """\
import torch
from torch import nn

model = nn.DataParallel(nn.Linear(4, 2).to("cuda"))
print(model(torch.rand(8, 4)).shape)  # the wrapper moves its inputs
""",
    ),
    fix_safety=say("Safe: the wrapper's `.to()` moves the module inside."),
)
