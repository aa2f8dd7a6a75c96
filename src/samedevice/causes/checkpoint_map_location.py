"""SD113 checkpoint-map-location."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD113",
    slug="checkpoint-map-location",
    summary=say("A checkpoint puts its tensors back where they were saved, which is not where they are needed here."),
    why=say(
        "`torch.save` writes the device of each tensor and `torch.load` restores it there. On a machine "
        "without that device loading fails; on one with it, tensors land on the accelerator behind one's "
        "back."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.load.html",
    examples=(
        Example(
            wrong="""\
import io

import torch
from torch import nn

file = io.BytesIO()
torch.save({"centers": torch.rand(8, 2, device="cuda:1")}, file)
file.seek(0)
saved = torch.load(file)  # !
model = nn.Linear(4, 2).to("cuda:0")
images = torch.rand(8, 4, device="cuda:0")
print((model(images) - saved["centers"]).shape)
""",
            right="""\
import io

import torch
from torch import nn

file = io.BytesIO()
torch.save({"centers": torch.rand(8, 2, device="cuda:1")}, file)
file.seek(0)
saved = torch.load(file, map_location="cuda:0")
model = nn.Linear(4, 2).to("cuda:0")
images = torch.rand(8, 4, device="cuda:0")
print((model(images) - saved["centers"]).shape)
""",
            devices=2,
        ),
    ),
    clean=(
        """\
import io

import torch
from torch import nn

file = io.BytesIO()
torch.save(nn.Linear(4, 2).to("cuda").state_dict(), file)
file.seek(0)
model = nn.Linear(4, 2)
model.load_state_dict(torch.load(file))  # copied into the parameters, wherever those are
print(model(torch.rand(8, 4)).shape)
""",
    ),
    fix_safety=say(
        'Safe: `map_location="cpu"` always works, and `load_state_dict` copies into whatever device the '
        "parameters are on."
    ),
)
