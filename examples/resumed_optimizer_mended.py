"""Resume from a checkpoint: the model moves first, so the optimizer loads its state to where the parameters are."""

import io

import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def build():
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def train(model, optimizer, steps, where):
    for step in range(steps):
        x = torch.randn(64, 8, device=where)
        loss = F.mse_loss(model(x).squeeze(1), x.sum(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.3f} on {loss.device}")


torch.manual_seed(0)
checkpoint = io.BytesIO()
model, optimizer = build()
train(model, optimizer, 2, "cpu")
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint)

checkpoint.seek(0)
saved = torch.load(checkpoint, map_location="cpu")
model, optimizer = build()
model.load_state_dict(saved["model"])
model.to(device)
optimizer.load_state_dict(saved["optimizer"])
train(model, optimizer, 2, device)
