"""SD102 model-not-moved."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD102",
    slug="model-not-moved",
    summary=say("The input is on the accelerator and the model was never moved there."),
    why=say(
        "Modules are built on the CPU unless they are given `device=` or moved. `Module.to()` changes the "
        "module in place, so it can stand alone on a line; a module that is never moved keeps its parameters "
        "on the CPU."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(4, 2)
images = torch.rand(8, 4, device=device)
logits = model(images)  # !
print(logits.shape)
""",
            right="""\
import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(4, 2).to(device)
images = torch.rand(8, 4, device=device)
logits = model(images)
print(logits.shape)
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn

model = nn.Linear(4, 2)
model.to("cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
        """\
import torch
from torch import nn

model = nn.Linear(4, 2, device="cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
    ),
    fix_safety=say(
        "Safe where the model is small enough for the device. An optimizer that was built before the move "
        "stays right, since `Module.to()` keeps the parameter objects; its state may not (SD201)."
    ),
)
