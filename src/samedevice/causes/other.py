"""SD900 other."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD900",
    slug="other",
    summary=say("A device fault that fits no other cause."),
    why=say(
        "The explanation names the operation, each tensor with its device, and the line; what they have in "
        "common with the known causes was not enough to name one."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    examples=(
        Example(
            wrong="""\
import torch

prompt = torch.zeros(4, 8, requires_grad=True).to("cuda")
optimizer = torch.optim.Adam([prompt])  # !
""",
            right="""\
import torch

prompt = torch.zeros(4, 8, device="cuda", requires_grad=True)
optimizer = torch.optim.Adam([prompt])
""",
        ),
    ),
    clean=(
        """\
import torch

prompt = torch.zeros(4, 8, device="cuda").requires_grad_()
optimizer = torch.optim.Adam([prompt])
""",
    ),
    fix_safety=say("Each edit is proposed for the one place; look at it before it is made."),
)
