"""SD122 criterion-not-moved."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD122",
    slug="criterion-not-moved",
    summary=say("The loss holds tensors (class weights, for one) and was not moved with the model."),
    why=say(
        "A loss is a module: the weights that it is given are a buffer, and stay on the CPU until the loss is "
        "moved or they are made on the device."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

model = nn.Linear(4, 2).to("cuda")
criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0]))
images = torch.rand(8, 4, device="cuda")
labels = torch.randint(0, 2, (8,), device="cuda")
loss = criterion(model(images), labels)  # !
loss.backward()
""",
            right="""\
import torch
from torch import nn

model = nn.Linear(4, 2).to("cuda")
criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0])).to("cuda")
images = torch.rand(8, 4, device="cuda")
labels = torch.randint(0, 2, (8,), device="cuda")
loss = criterion(model(images), labels)
loss.backward()
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn

model = nn.Linear(4, 2).to("cuda")
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)  # holds no tensor
labels = torch.randint(0, 2, (8,), device="cuda")
criterion(model(torch.rand(8, 4, device="cuda")), labels).backward()
""",
    ),
    fix_safety=say("Safe: a loss has no parameters that an optimizer could hold."),
)
