import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def seeded_generator(seed, device):
    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    return generator


class NoisyRegressor(nn.Module):
    def __init__(self, generator, sigma=0.1):
        super().__init__()
        self.generator, self.sigma = generator, sigma
        self.net = nn.Sequential(nn.Linear(5, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, x):
        if self.training:
            noise = torch.randn(x.shape, generator=self.generator, device=x.device)
            x = x + self.sigma * noise
        return self.net(x).squeeze(-1)


def main(seed=17):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(seed)
    generator = seeded_generator(seed, device)
    x = torch.randn(96, 5)
    dataset = TensorDataset(x, x.sum(1))
    loader = DataLoader(dataset, batch_size=32, shuffle=True, generator=generator)

    model = NoisyRegressor(generator).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, round(loss.item(), 4))


if __name__ == "__main__":
    main()
