"""SD115 split-model."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD115",
    slug="split-model",
    summary=say("The parts of one model are on different devices and a tensor crosses over without being moved."),
    why=say(
        "A model spread over two devices needs a move wherever a tensor passes from one part to the next; "
        "autograd takes the gradient back the same way."
    ),
    source="https://docs.pytorch.org/tutorials/intermediate/model_parallel_tutorial.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn


class TwoParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8).to("cuda:0")
        self.second = nn.Linear(8, 2).to("cuda:1")

    def forward(self, x):
        return self.second(self.first(x))  # !


print(TwoParts()(torch.rand(8, 4, device="cuda:0")).shape)
""",
            right="""\
import torch
from torch import nn


class TwoParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8).to("cuda:0")
        self.second = nn.Linear(8, 2).to("cuda:1")

    def forward(self, x):
        return self.second(self.first(x).to("cuda:1"))


print(TwoParts()(torch.rand(8, 4, device="cuda:0")).shape)
""",
            devices=2,
        ),
    ),
    clean=(
        """\
import torch
from torch import nn


class OneDevice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8).to("cuda:0")
        self.second = nn.Linear(8, 2).to("cuda:0")

    def forward(self, x):
        return self.second(self.first(x))


print(OneDevice()(torch.rand(8, 4, device="cuda:0")).shape)
""",
    ),
    fix_safety=say("Safe: the copy is needed, and backward crosses back by itself."),
)
