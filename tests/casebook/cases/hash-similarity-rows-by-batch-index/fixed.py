import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class IndexedImages(Dataset):
    def __init__(self, n=60, classes=4):
        self.images = torch.randn(n, 24)
        self.labels = torch.randint(0, classes, (n,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i], i


def pairwise_similarity(a, b):
    same = a.unsqueeze(1) == b.unsqueeze(0)
    return torch.where(same, torch.tensor(1.0), torch.tensor(-1.0))


class HashLoss(nn.Module):
    def __init__(self, bits, gamma=0.1):
        super().__init__()
        self.bits, self.gamma = bits, gamma

    def forward(self, codes, bank, S):
        inner = codes @ bank.t() / self.bits
        quantise = (codes.abs() - 1).pow(2).mean()
        return (inner - S).pow(2).mean() + self.gamma * quantise


torch.manual_seed(13)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
bits = 8
dataset = IndexedImages()
loader = DataLoader(dataset, batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, bits), nn.Tanh()).to(device)
criterion = HashLoss(bits).to(device)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

bank = torch.randn(len(dataset), bits).sign().to(device)
S = pairwise_similarity(dataset.labels, dataset.labels).to(device)

for epoch in range(2):
    for batch in loader:
        images, labels, index = (part.to(device) for part in batch)
        codes = model(images)
        bank[index] = codes.detach().sign()
        loss = criterion(codes, bank, S[index, :])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
