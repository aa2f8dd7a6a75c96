"""SD120 hidden-state."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD120",
    slug="hidden-state",
    summary=say("The recurrent state is on another device than the input."),
    why=say(
        "A recurrent layer that is given no state makes one beside its input. A state that the script makes "
        "is on the CPU unless it is told otherwise."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.GRU.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

layer = nn.GRU(4, 8).to("cuda")
x = torch.rand(5, 2, 4, device="cuda")
hidden = torch.zeros(1, 2, 8)  # !
output, hidden = layer(x, hidden)
print(output.shape)
""",
            right="""\
import torch
from torch import nn

layer = nn.GRU(4, 8).to("cuda")
x = torch.rand(5, 2, 4, device="cuda")
hidden = torch.zeros(1, 2, 8, device=x.device)
output, hidden = layer(x, hidden)
print(output.shape)
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn

layer = nn.GRU(4, 8).to("cuda")
output, hidden = layer(torch.rand(5, 2, 4, device="cuda"))
output, hidden = layer(torch.rand(5, 2, 4, device="cuda"), hidden)
print(output.shape, hidden.detach().cpu().shape)
""",
    ),
    fix_safety=say("Safe: the state is zeros on either device."),
)
