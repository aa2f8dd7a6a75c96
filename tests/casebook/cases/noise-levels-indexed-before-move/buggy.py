import torch
import torch.nn as nn


class DiffusionSchedule:
    def __init__(self, steps=50, beta_min=1e-4, beta_max=0.02):
        betas = torch.linspace(beta_min, beta_max, steps)
        self.steps = steps
        self.alphas = 1.0 - betas
        self.alpha_bars = torch.cumprod(self.alphas, dim=0)

    def at(self, t, like):
        shape = (-1,) + (1,) * (like.dim() - 1)
        return self.alpha_bars[t].to(like).view(shape)

    def add_noise(self, x0, noise, t):
        a = self.at(t, x0)
        return a.sqrt() * x0 + (1 - a).sqrt() * noise


class Denoiser(nn.Module):
    def __init__(self, channels=1, width=16, steps=50):
        super().__init__()
        self.time = nn.Embedding(steps, width)
        self.inp = nn.Conv2d(channels, width, 3, padding=1)
        self.out = nn.Conv2d(width, channels, 3, padding=1)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)[:, :, None, None]
        return self.out(nn.functional.silu(h))


def train(steps=4):
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    schedule = DiffusionSchedule()
    model = Denoiser().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        x0 = torch.rand(8, 1, 8, 8, device=device) * 2 - 1
        noise = torch.randn_like(x0)
        t = torch.randint(0, schedule.steps, (x0.shape[0],), device=device)
        loss = nn.functional.mse_loss(model(schedule.add_noise(x0, noise, t), t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, round(loss.item(), 4))


if __name__ == "__main__":
    train()
