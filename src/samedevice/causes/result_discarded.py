"""SD105 result-discarded."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD105",
    slug="result-discarded",
    summary=say("`tensor.to(device)` returns a new tensor; the result was dropped."),
    why=say(
        "A tensor never changes its device. `.to()`, `.cuda()` and `.cpu()` return a copy on the other device "
        "and leave the tensor as it is. Only modules are changed in place, which is why the same line is "
        "right for a model."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

model = nn.Linear(4, 2).to("cuda")
images = torch.rand(8, 4)
images.to("cuda")  # !
print(model(images).shape)
""",
            right="""\
import torch
from torch import nn

model = nn.Linear(4, 2).to("cuda")
images = torch.rand(8, 4)
images = images.to("cuda")
print(model(images).shape)
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn

model = nn.Linear(4, 2)
model.to("cuda")
images = torch.rand(8, 4)
print(model(images.to("cuda")).shape)
""",
    ),
    fix_safety=say("Safe: the copy was made before as well, and thrown away."),
)
