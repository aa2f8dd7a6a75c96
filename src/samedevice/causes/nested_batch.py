"""SD108 nested-batch."""

from samedevice.causes.cause import Cause, Example
from samedevice.texts import say

CAUSE = Cause(
    code="SD108",
    slug="nested-batch",
    summary=say("The batch was moved in part: a tensor deeper in the dict, list or object stayed behind."),
    why=say(
        "A loop over a dict that moves tensors passes by whatever holds tensors: a dict in the dict, a list, "
        "a dataclass. The parts that were moved work, and the first use of the part that was not fails, often "
        "far away."
    ),
    source="https://docs.pytorch.org/docs/stable/data.html#memory-pinning",
    examples=(
        Example(
            wrong="""\
import torch
from torch import nn

model = nn.Linear(4, 4).to("cuda")
batch = {"image": torch.rand(2, 4), "extra": {"mask": torch.ones(2, 4)}}
batch = {key: value.to("cuda") if torch.is_tensor(value) else value for key, value in batch.items()}
print((model(batch["image"]) * batch["extra"]["mask"]).shape)  # !
""",
            right="""\
import torch
from torch import nn

import samedevice

model = nn.Linear(4, 4).to("cuda")
batch = {"image": torch.rand(2, 4), "extra": {"mask": torch.ones(2, 4)}}
batch = samedevice.move_to_device(batch, "cuda")
print((model(batch["image"]) * batch["extra"]["mask"]).shape)
""",
        ),
    ),
    clean=(
        """\
import torch
from torch import nn

model = nn.Linear(4, 4).to("cuda")
batch = {"image": torch.rand(2, 4), "name": ["a", "b"], "lengths": torch.tensor([2, 4])}
image = batch["image"].to("cuda")
print(model(image).shape, batch["name"], batch["lengths"].tolist())
""",
    ),
    fix_safety=say("Safe: `samedevice.move_to_device` keeps every container's type and what needs no move."),
    not_fixed=say("which of the two lines to change, and how far down the batch goes, is for the author to say"),
)
