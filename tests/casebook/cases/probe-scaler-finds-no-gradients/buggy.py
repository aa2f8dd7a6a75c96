import torch
from torch import nn


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(12, 24), nn.ReLU())
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        with torch.no_grad():
            h = self.backbone(x)
        return self.head(h)


def probe(model, loader, device, use_amp):
    optimizer = torch.optim.SGD(model.backbone.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        with torch.autocast(device.type, dtype=torch.float16 if use_amp else torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x).float(), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return loss.item()


torch.manual_seed(0)
use_amp = torch.cuda.is_available()
device = torch.device("cuda" if use_amp else "cpu")
data = torch.utils.data.TensorDataset(torch.randn(64, 12), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16)
print(f"linear probe: {probe(Student().to(device), loader, device, use_amp):.4f}")
