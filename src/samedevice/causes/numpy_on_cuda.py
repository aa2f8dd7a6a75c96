"""SD112 numpy-on-cuda."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD112",
    slug="numpy-on-cuda",
    summary=say("A tensor on the accelerator is handed to NumPy, which reads CPU memory only."),
    why=say(
        "`.numpy()` shares memory with the tensor, and NumPy cannot read the accelerator's memory. Plotting "
        "and metric libraries call it on what they are given."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html",
    examples=(
        Example(
            wrong="""\
import torch

scores = torch.rand(3, device="cuda")
print(scores.numpy().mean())  # !
""",
            right="""\
import torch

scores = torch.rand(3, device="cuda")
print(scores.cpu().numpy().mean())
""",
        ),
    ),
    clean=(
        """\
import torch

scores = torch.rand(3, device="cuda", requires_grad=True)
print(scores.detach().cpu().numpy().mean(), scores.tolist(), scores.sum().item())
""",
    ),
    fix_safety=say("Safe: the copy waits for the accelerator, as any look at the values does."),
)
