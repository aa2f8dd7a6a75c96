import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.backbone = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 64), nn.ReLU())
        self.project = nn.Linear(64, dim)

    def forward(self, x):
        return self.project(self.backbone(x))


def info_nce(features, n_views=2, temperature=0.1):
    n = features.shape[0] // n_views
    ids = torch.cat([torch.arange(n) for _ in range(n_views)])
    same = ids.unsqueeze(0) == ids.unsqueeze(1)
    features = F.normalize(features, dim=1)
    similarity = features @ features.T
    off_diagonal = ~torch.eye(len(ids), dtype=torch.bool)
    same = same[off_diagonal].view(len(ids), -1)
    similarity = similarity[off_diagonal].view(len(ids), -1)
    positives = similarity[same].view(len(ids), -1)
    negatives = similarity[~same].view(len(ids), -1)
    logits = torch.cat([positives, negatives], dim=1) / temperature
    labels = torch.zeros(logits.shape[0], dtype=torch.long)
    return F.cross_entropy(logits, labels)


def augment(images):
    noise = torch.randn_like(images) * 0.1
    return torch.cat([images + noise, images.flip(-1) - noise])


torch.manual_seed(11)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Encoder().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, weight_decay=1e-4)
for step in range(5):
    images = torch.rand(16, 3, 8, 8).to(device)
    loss = info_nce(model(augment(images)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: {loss.item():.4f}")
