"""SD103 plain-attribute."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD103",
    slug="plain-attribute",
    summary=say("A tensor kept as a plain attribute of a module is not moved by the module's `.to()`."),
    why=say(
        "`Module.to()`, `.cuda()` and `.cpu()` move parameters and buffers. A tensor assigned to `self` is "
        "neither, so it stays where it was made, and `state_dict()` does not save it."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn


class Position(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.table = torch.randn(length, width)  # !

    def forward(self, x):
        return x + self.table[: x.size(1)]


model = Position(32, 8).to("cuda")
print(model(torch.rand(2, 16, 8, device="cuda")).shape)
""",
            right="""\
import torch
from torch import nn


class Position(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.register_buffer("table", torch.randn(length, width), persistent=False)

    def forward(self, x):
        return x + self.table[: x.size(1)]


model = Position(32, 8).to("cuda")
print(model(torch.rand(2, 16, 8, device="cuda")).shape)
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn


class Position(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.table = torch.randn(length, width)

    def forward(self, x):
        return x + self.table[: x.size(1)].to(x.device)


model = Position(32, 8).to("cuda")
print(model(torch.rand(2, 16, 8, device="cuda")).shape)
""",
        """\
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.names = ["a", "b"]
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.gain


model = Scale(8).to("cuda")
print(model(torch.rand(2, 8, device="cuda")).shape)
""",
    ),
    fix_safety=say(
        "Safe: `persistent=False` keeps the buffer out of `state_dict()`, as the attribute was, so checkpoints go on "
        "loading. Leave it out to have the tensor saved. One that is to be trained belongs in `nn.Parameter` instead."
    ),
)
