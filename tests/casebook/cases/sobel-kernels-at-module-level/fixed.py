import torch
import torch.nn as nn
import torch.nn.functional as F

_GX = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
SOBEL = torch.stack([_GX, _GX.t()]).unsqueeze(1)


def edges(image):
    gradient = F.conv2d(image, SOBEL.to(image.device), padding=1)
    return gradient.pow(2).sum(dim=1, keepdim=True).add(1e-8).sqrt()


class EdgeAwareLoss(nn.Module):
    def __init__(self, weight=0.5):
        super().__init__()
        self.weight = weight
        self.pixel = nn.L1Loss()

    def forward(self, output, target):
        return self.pixel(output, target) + self.weight * self.pixel(edges(output), edges(target))


class Refiner(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))

    def forward(self, depth):
        return depth + self.net(depth)


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model, criterion = Refiner().to(device), EdgeAwareLoss().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(4):
        clean = torch.rand(2, 1, 16, 16, device=device)
        noisy = clean + 0.1 * torch.randn_like(clean)
        loss = criterion(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, f"{loss.item():.4f}")
