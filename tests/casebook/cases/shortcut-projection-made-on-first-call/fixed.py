import torch
import torch.nn as nn


class ResidualMLP(nn.Module):
    """Width of the input is only known once the first batch arrives."""

    def __init__(self, width=32):
        super().__init__()
        self.width = width
        self.project = None
        self.block = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))

    def forward(self, x):
        if self.project is None:
            self.project = nn.Linear(x.shape[-1], self.width).to(x.device)
        h = self.project(x)
        return h + self.block(h)


class Regressor(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.stem = ResidualMLP()
        self.rest = nn.ModuleList(ResidualMLP() for _ in range(depth - 1))
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.rest:
            x = layer(x)
        return self.head(x).squeeze(-1)


def main():
    torch.manual_seed(3)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Regressor().to(device)
    windows = torch.randn(64, 18).to(device)
    target = windows.mean(1)
    model.eval()
    with torch.no_grad():
        print("untrained mse", nn.functional.mse_loss(model(windows), target).item())
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(5):
        loss = nn.functional.mse_loss(model(windows), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("trained mse", loss.item())


if __name__ == "__main__":
    main()
