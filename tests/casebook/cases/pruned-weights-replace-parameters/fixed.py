import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 48)
        self.fc2 = nn.Linear(48, 48)
        self.head = nn.Linear(48, 3)

    def forward(self, x):
        return self.head(F.relu(self.fc2(F.relu(self.fc1(x)))))


def shrink(model, keep):
    norms = model.fc1.weight.norm(dim=1)
    kept = norms.topk(keep).indices
    with torch.no_grad():
        model.fc1.weight = nn.Parameter(model.fc1.weight[kept].clone())
        model.fc1.bias = nn.Parameter(model.fc1.bias[kept].clone())
        model.fc2.weight = nn.Parameter(model.fc2.weight[:, kept].clone())
    model.fc1.out_features = model.fc2.in_features = keep
    return model


def run_epochs(model, optimizer, data, n):
    x, y = data
    for _ in range(n):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(2)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.randn(128, 20, device=device)
    data = x, x[:, :3].argmax(1)
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print("dense", round(run_epochs(model, optimizer, data, 5), 4))

    model = shrink(model, keep=24)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    print("finetuned", round(run_epochs(model, optimizer, data, 5), 4))


if __name__ == "__main__":
    main()
