# culprit: noise
# operation: aten::add
# says: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
"""A loop with accelerate: `prepare`, accumulation, gathered metrics, a saved state."""

import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(gradient_accumulation_steps=2)
set_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=4, shuffle=True)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
losses = []
for _ in range(2):
    for x, y in loader:
        with accelerator.accumulate(model):
            noise = torch.zeros_like(x) + 0.1  # planted: noise = torch.zeros(x.shape) + 0.1
            loss = torch.nn.functional.mse_loss(model(x + noise), y)  # fault
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather_for_metrics(loss.detach()).mean().item())
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    accelerator.load_state(folder)
if torch.cuda.is_available():
    assert accelerator.device == torch.device("cuda:0") or accelerator.device == torch.device("cuda")
    assert next(accelerator.unwrap_model(model).parameters()).device == torch.device("cuda:0")
print([round(loss, 6) for loss in losses])
