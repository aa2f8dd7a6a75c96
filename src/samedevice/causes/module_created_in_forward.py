"""SD114 module-created-in-forward."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD114",
    slug="module-created-in-forward",
    summary=say(
        "A module is built inside `forward`, after the model was moved, so it is on the CPU (and never trained)."
    ),
    why=say(
        "What `forward` builds did not exist when `.to()` ran. It also starts from new random weights at each "
        "call, and no optimizer knows it."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/modules.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        head = nn.Linear(4, 2)  # !
        return head(self.body(x))


model = Classifier().to("cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
            right="""\
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x))


model = Classifier().to("cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        return nn.ReLU()(self.body(x))  # holds no tensor


model = Classifier().to("cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
    ),
    fix_safety=say("The module is built once and trained, as was meant: results and `state_dict()` change."),
    not_fixed=say("the module moves to `__init__` under a name that only its author can choose"),
)
