import torch
import torch.nn as nn


class EMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, param in model.named_parameters():
            self.shadow[name].lerp_(param, 1 - self.decay)

    def copy_to(self, model):
        for name, param in model.named_parameters():
            param.data.copy_(self.shadow[name])


class ScoreNet(nn.Module):
    def __init__(self, dim=2, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, width), nn.SiLU(), nn.Linear(width, dim))

    def forward(self, x, sigma):
        return self.net(torch.cat([x, sigma.log()], dim=1)) / sigma


def loss_fn(model, x):
    sigma = torch.empty(len(x), 1, device=x.device).uniform_(0.1, 2.0)
    noise = torch.randn_like(x)
    return ((sigma * model(x + sigma * noise, sigma) + noise) ** 2).sum(1).mean()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = ScoreNet()
    model.to(device)
    ema = EMA(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(5):
        x = torch.randn(64, 2, device=device) * 0.5
        loss = loss_fn(model, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
    ema.copy_to(model)
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
