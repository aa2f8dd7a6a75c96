"""SD304 round-trip-in-loop."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD304",
    slug="round-trip-in-loop",
    summary=say("A tensor goes to the CPU and back in every round of a loop."),
    why=say(
        "Each of the two copies crosses the bus, and the one to the CPU waits until the device has done all that "
        "it was asked for. Most of what is done on the CPU in between can be done where the tensor is."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
    examples=(
        Example(
            wrong="""\
import torch

device = torch.device("cuda")
x = torch.rand(8, device=device)
for _ in range(3):
    ordered = x.cpu().sort().values
    x = ordered.to(device) + 1  # !
print(x.shape)
""",
            right="""\
import torch

device = torch.device("cuda")
x = torch.rand(8, device=device)
for _ in range(3):
    ordered = x.sort().values
    x = ordered + 1
print(x.shape)
""",
        ),
    ),
    clean=(
        """\
import torch

device = torch.device("cuda")
kept = []
x = torch.rand(8, device=device)
for _ in range(3):
    x = x + torch.rand(8, device=device)
    kept.append(x.cpu())
print(torch.stack(kept).to(device).shape)
""",
    ),
    fix_safety=say("No edit is made."),
    not_run=say("it is no fault: a run does what was meant"),
    not_fixed=say("whether what is done on the CPU can be done on the device is not seen"),
)
