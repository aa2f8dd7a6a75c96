"""SD109 index-device."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD109",
    slug="index-device",
    summary=say("A tensor is indexed by one on another device."),
    why=say(
        "Indices may be on the CPU whatever the tensor is on, and PyTorch copies them over. Not the other way "
        "round: indices on the accelerator cannot reach into a CPU tensor."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    examples=(
        Example(
            wrong="""\
import torch

table = torch.rand(10, 4)
chosen = torch.randint(0, 10, (3,), device="cuda")
print(table[chosen].shape)  # !
""",
            right="""\
import torch

table = torch.rand(10, 4)
chosen = torch.randint(0, 10, (3,), device="cuda")
print(table[chosen.cpu()].shape)
""",
        ),
    ),
    clean=(
        """\
import torch

table = torch.rand(10, 4, device="cuda")
chosen = torch.randint(0, 10, (3,))
print(table[chosen].shape)
""",
    ),
    fix_safety=say(
        "`index.cpu()` waits for the accelerator each time. In a loop it is faster to keep the indexed tensor "
        "on the accelerator."
    ),
)
