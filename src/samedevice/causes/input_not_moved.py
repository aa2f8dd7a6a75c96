"""SD101 input-not-moved."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD101",
    slug="input-not-moved",
    summary=say("The model is on the accelerator and its input was left on the CPU."),
    why=say(
        "An operation needs all its tensors on one device, and PyTorch never moves one by itself: a hidden "
        "copy would be slow and easy to miss. A DataLoader gives CPU tensors, so each batch has to be moved "
        "in the loop."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(4, 2).to(device)
images = torch.rand(8, 4)
logits = model(images)  # !
print(logits.shape)
""",
            right="""\
import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(4, 2).to(device)
images = torch.rand(8, 4)
logits = model(images.to(device))
print(logits.shape)
""",
        ),
        Example(
            wrong="""\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(4, 2).to("cuda")
loader = DataLoader(TensorDataset(torch.rand(8, 4), torch.randint(0, 2, (8,))), batch_size=4)
for features, labels in loader:
    features = features.to("cuda")
    loss = nn.functional.cross_entropy(model(features), labels)  # !
    loss.backward()
""",
            right="""\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(4, 2).to("cuda")
loader = DataLoader(TensorDataset(torch.rand(8, 4), torch.randint(0, 2, (8,))), batch_size=4)
for features, labels in loader:
    features = features.to("cuda")
    loss = nn.functional.cross_entropy(model(features), labels.to("cuda"))
    loss.backward()
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(4, 2).to(device)
half = torch.tensor(0.5)
logits = model(torch.rand(8, 4, device=device)) * half  # one number on the CPU joins any device
print(logits.shape)
""",
        """\
import torch
from torch import nn

model = nn.Linear(4, 2)
print(model(torch.rand(8, 4)).shape)
model.to("cuda")
print(model(torch.rand(8, 4, device="cuda")).shape)
""",
    ),
    fix_safety=say(
        "Safe: the copy is what was meant, and gradients flow back through it. Move a batch once, where the "
        "loop begins."
    ),
)
