import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def mixup(images, labels, generator, alpha=0.4):
    lam = torch.distributions.Beta(alpha, alpha).sample()
    order = torch.randperm(len(images), generator=generator)
    mixed = lam * images + (1 - lam) * images[order]
    return mixed, labels, labels[order], lam


def main(seed=5):
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    full = TensorDataset(torch.randn(80, 12), torch.randint(0, 3, (80,)))
    train, val = random_split(full, [60, 20], generator=generator)
    loader = DataLoader(train, batch_size=20, shuffle=True, generator=generator, pin_memory=use_cuda)
    start = torch.randn(12, 3, generator=generator).to(device)
    model = nn.Linear(12, 3).to(device)
    with torch.no_grad():
        model.weight.copy_(start.t())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total, seen = 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        mixed, a, b, lam = mixup(images, labels, generator)
        logits = model(mixed)
        loss = lam * nn.functional.cross_entropy(logits, a) + (1 - lam) * nn.functional.cross_entropy(logits, b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(images)
        seen += len(images)
    confusion = torch.zeros(3, 3, dtype=torch.long)
    for images, labels in DataLoader(val, batch_size=10):
        predicted = model(images.to(device)).argmax(1).cpu()
        for t, p in zip(labels, predicted):
            confusion[t, p] += 1
    print(f"loss {total / seen:.4f}", confusion.diag().sum().item(), "of", len(val))


if __name__ == "__main__":
    main()
