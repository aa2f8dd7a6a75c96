import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class VAE(nn.Module):
    def __init__(self, n=30, z=4):
        super().__init__()
        self.enc = nn.Linear(n, 2 * z)
        self.dec = nn.Linear(z, n)

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=-1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()
        return self.dec(z), kl


model = VAE().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
beta = 0.1

for epoch in range(2):
    losses, kls = [], []
    for _ in range(5):
        x = torch.rand(16, 30).to(device)
        recon, kl = model(x)
        loss = nn.functional.binary_cross_entropy_with_logits(recon, x) + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        kls.append(kl.item())
    print(f"epoch {epoch} loss {np.mean(losses):.4f} kl {np.mean(kls):.4f}")
