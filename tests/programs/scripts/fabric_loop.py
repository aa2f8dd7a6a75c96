# culprit: centers
# operation: aten::sub
# says: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
"""A loop with Lightning Fabric: set up, automatic precision, a checkpoint."""

import tempfile
import warnings

import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
fabric = Fabric(accelerator="gpu" if torch.cuda.is_available() else "cpu", devices=1, precision="bf16-mixed")
fabric.launch()
fabric.seed_everything(0, verbose=False)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
loader = fabric.setup_dataloaders(DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4))
centers = fabric.to_device(torch.ones(2))  # planted: centers = torch.ones(2)
for _ in range(2):
    for (x,) in loader:
        assert x.device == fabric.device
        optimizer.zero_grad()
        with fabric.autocast():
            output = model(x)
        loss = (output - centers).square().mean()  # fault
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
with tempfile.TemporaryDirectory() as folder:
    state = {"model": model, "optimizer": optimizer, "step": 4}
    fabric.save(f"{folder}/state.ckpt", state)
    fabric.load(f"{folder}/state.ckpt", state)
assert all(s["momentum_buffer"].device == fabric.device for s in optimizer.state.values())
print([p.detach().flatten()[:2].tolist() for p in model.parameters()])
