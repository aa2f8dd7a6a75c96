import torch
import torch.nn as nn


class CpuEMA:
    """Averages on the CPU to save GPU memory; swapped in for evaluation."""

    def __init__(self, params, decay=0.95):
        self.decay = decay
        self.shadow = [p.detach().cpu().clone() for p in params]
        self.backup = None

    @torch.no_grad()
    def update(self, params):
        for s, p in zip(self.shadow, params):
            s.lerp_(p.detach().cpu(), 1 - self.decay)

    @torch.no_grad()
    def store(self, params):
        self.backup = [p.detach().cpu().clone() for p in params]
        for p, s in zip(params, self.shadow):
            p.copy_(s)

    @torch.no_grad()
    def restore(self, params):
        torch._foreach_copy_([p.data for p in params], self.backup)
        self.backup = None


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
params = list(model.parameters())
ema = CpuEMA(params)
optimizer = torch.optim.Adam(params, lr=1e-2)
x = torch.randn(64, 6, device=device)
y = x.sum(1, keepdim=True)
for step in range(10):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(params)
ema.store(params)
with torch.no_grad():
    averaged = nn.functional.mse_loss(model(x), y).item()
ema.restore(params)
print(f"train {loss.item():.4f} averaged {averaged:.4f}")
