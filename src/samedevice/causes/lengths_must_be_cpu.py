"""SD110 lengths-must-be-cpu."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD110",
    slug="lengths-must-be-cpu",
    summary=say("Sequence lengths have to be on the CPU, and these are on the accelerator."),
    why=say(
        "`pack_padded_sequence` reads the lengths on the CPU to lay out the packed batch. A helper that moves "
        "a whole batch moves them too."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_padded_sequence.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch.nn.utils.rnn import pack_padded_sequence

x = torch.rand(2, 5, 3, device="cuda")
lengths = torch.tensor([5, 3], device="cuda")
packed = pack_padded_sequence(x, lengths, batch_first=True)  # !
print(packed.data.shape)
""",
            right="""\
import torch
from torch.nn.utils.rnn import pack_padded_sequence

x = torch.rand(2, 5, 3, device="cuda")
lengths = torch.tensor([5, 3], device="cuda")
packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True)
print(packed.data.shape)
""",
        ),
    ),
    clean=(
        """\
import torch
from torch.nn.utils.rnn import pack_padded_sequence

x = torch.rand(2, 5, 3, device="cuda")
print(pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=True).data.shape)
print(pack_padded_sequence(x, [5, 3], batch_first=True).data.shape)
""",
    ),
    fix_safety=say("Safe. Lengths that were never moved save the copy back."),
)
