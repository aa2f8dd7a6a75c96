import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class SmallNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(self.features(x))


def train_epoch(model, loader, optimizer, device):
    model.train()
    for images, target in loader:
        images, target = images.to(device), target.to(device)
        loss = F.cross_entropy(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    total, correct = 0.0, 0
    for images, target in loader:
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        output = model(images)
        total += F.cross_entropy(output, target, reduction="sum").item()
        correct += (output.argmax(1) == target).sum().item()
    return total / len(loader.dataset), correct / len(loader.dataset)


def main():
    torch.manual_seed(1)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(48, 3, 12, 12), torch.randint(0, 5, (48,)))
    train_loader = DataLoader(data, batch_size=16, shuffle=True)
    val_loader = DataLoader(data, batch_size=16, pin_memory=torch.cuda.is_available())
    model = SmallNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(2):
        train_epoch(model, train_loader, optimizer, device)
        loss, accuracy = validate(model, val_loader, device)
        print(f"epoch {epoch}: val loss {loss:.3f} acc {accuracy:.2%}")


if __name__ == "__main__":
    main()
