"""SD121 metric-state."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD121",
    slug="metric-state",
    summary=say("A metric accumulates on another device than what it is given."),
    why=say(
        "A metric object is no module of the model: its counts are where they were made, and the predictions "
        "are on the accelerator."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    examples=(
        Example(
            wrong="""\
import torch


class ClassCounts:
    def __init__(self, classes):
        self.counts = torch.zeros(classes, dtype=torch.int64)

    def update(self, labels):
        self.counts += torch.bincount(labels, minlength=len(self.counts))  # !


counts = ClassCounts(3)
counts.update(torch.tensor([0, 1, 1, 2], device="cuda"))
print(counts.counts)
""",
            right="""\
import torch


class ClassCounts:
    def __init__(self, classes):
        self.counts = torch.zeros(classes, dtype=torch.int64)

    def update(self, labels):
        self.counts += torch.bincount(labels, minlength=len(self.counts)).to(self.counts.device)


counts = ClassCounts(3)
counts.update(torch.tensor([0, 1, 1, 2], device="cuda"))
print(counts.counts)
""",
        ),
    ),
    clean=(
        """\
import torch


class Mean:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, losses):
        self.total += losses.sum().item()
        self.count += len(losses)


mean = Mean()
mean.update(torch.rand(4, device="cuda"))
print(mean.total / mean.count)
""",
    ),
    fix_safety=say(
        "Safe: the copy of a small result waits for the accelerator. Counts on the accelerator avoid the wait."
    ),
)
