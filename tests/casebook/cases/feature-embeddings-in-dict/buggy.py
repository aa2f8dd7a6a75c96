import torch
from torch import nn

COLUMNS = {"store": 20, "weekday": 7, "promo": 3}


class SalesModel(nn.Module):
    def __init__(self, columns, n_numeric, width=8):
        super().__init__()
        self.columns = list(columns)
        self.embeddings = {}
        for name, size in columns.items():
            self.embeddings[name] = nn.Embedding(size, width)
        total = width * len(columns) + n_numeric
        self.body = nn.Sequential(nn.Linear(total, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))

    def forward(self, categorical, numeric):
        parts = [self.embeddings[name](categorical[:, i]) for i, name in enumerate(self.columns)]
        return self.body(torch.cat(parts + [numeric], dim=1)).squeeze(1)


def batches(n_batches, size):
    for _ in range(n_batches):
        categorical = torch.stack([torch.randint(0, n, (size,)) for n in COLUMNS.values()], dim=1)
        numeric = torch.randn(size, 4)
        yield categorical, numeric, numeric.sum(1) + categorical[:, 2].float()


torch.manual_seed(5)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = SalesModel(COLUMNS, n_numeric=4)
model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loss_fn = nn.HuberLoss()

model.train()
for step, (categorical, numeric, sales) in enumerate(batches(6, 64)):
    categorical, numeric, sales = categorical.to(device), numeric.to(device), sales.to(device)
    loss = loss_fn(model(categorical, numeric), sales)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.3f}")
