import io

import torch
import torch.nn as nn


class Normalizer:
    def __init__(self, values=None):
        if values is not None:
            self.mean = values.mean(0)
            self.std = values.std(0)

    def norm(self, values):
        return (values - self.mean) / self.std

    def denorm(self, values):
        return values * self.std + self.mean

    def state_dict(self):
        return {"mean": self.mean, "std": self.std}

    def load_state_dict(self, state):
        self.mean = state["mean"]
        self.std = state["std"]


class EnergyModel(nn.Module):
    def __init__(self, n_species=5, n_targets=2):
        super().__init__()
        self.species = nn.Embedding(n_species, 16)
        self.out = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, n_targets))

    def forward(self, atoms):
        return self.out(self.species(atoms).mean(1))


def train(device):
    atoms = torch.randint(0, 5, (32, 6), device=device)
    energies = torch.stack([atoms.float().sum(1), atoms.float().pow(2).sum(1)], dim=1)
    normalizer = Normalizer(energies)
    model = EnergyModel().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(5):
        loss = nn.functional.l1_loss(model(atoms), normalizer.norm(energies))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "normalizer": normalizer.state_dict()}, file)
    return file


def evaluate(file, device):
    file.seek(0)
    checkpoint = torch.load(file, map_location=device)
    model = EnergyModel()
    model.load_state_dict(checkpoint["model"])
    model.to(device).eval()
    normalizer = Normalizer()
    normalizer.load_state_dict(checkpoint["normalizer"])
    with torch.no_grad():
        atoms = torch.randint(0, 5, (4, 6), device=device)
        return normalizer.denorm(model(atoms))


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(evaluate(train(device), device).tolist())
