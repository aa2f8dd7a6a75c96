"""SD104 plain-container."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD104",
    slug="plain-container",
    summary=say("Modules or parameters in a plain list, tuple or dict are not registered, so `.to()` passes them by."),
    why=say(
        "A module finds its parts when they are assigned to `self` as modules or parameters. Inside a plain "
        "list they are invisible: `.to()` does not move them, `parameters()` does not list them, so no "
        "optimizer trains them, and `state_dict()` does not save them."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = [nn.Linear(4, 2) for _ in range(3)]  # !

    def forward(self, x):
        return sum(head(x) for head in self.heads)


model = Ensemble().to("cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
            right="""\
import torch
from torch import nn


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(4, 2) for _ in range(3)])

    def forward(self, x):
        return sum(head(x) for head in self.heads)


model = Ensemble().to("cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
        ),
        Example(
            wrong="""\
import torch
from torch import nn


class Gains(nn.Module):
    def __init__(self):
        super().__init__()
        self.gains = [nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))]  # !

    def forward(self, x):
        return x * self.gains[0] + self.gains[1]


model = Gains().to("cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
            right="""\
import torch
from torch import nn


class Gains(nn.Module):
    def __init__(self):
        super().__init__()
        self.gains = nn.ParameterList([nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))])

    def forward(self, x):
        return x * self.gains[0] + self.gains[1]


model = Gains().to("cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self, depth):
        super().__init__()
        layers = [nn.Linear(4, 4) for _ in range(depth)]
        self.body = nn.Sequential(*layers)
        self.sizes = [4] * depth

    def forward(self, x):
        return self.body(x)


model = Stack(3).to("cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
    ),
    fix_safety=say(
        "The parts now appear in `parameters()` and `state_dict()`: they are trained and saved, as was meant. "
        "A checkpoint written before lacks their keys."
    ),
)
