# culprit: table
# operation: aten::embedding
# says: different from other tensors
"""Workers that load pinned batches, an averaged teacher, stochastic weight averaging and statistics by hand."""

import copy

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")


class Pairs(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(3)
        self.x, self.kind = torch.randn(24, 6, generator=generator), torch.randint(4, (24,), generator=generator)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"x": self.x[index], "kind": self.kind[index], "name": str(index)}


def main():
    torch.manual_seed(0)
    student = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)).to(device)
    teacher = copy.deepcopy(student).requires_grad_(False)
    averaged = AveragedModel(student, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    scheduler = SWALR(optimizer, swa_lr=0.05)
    table = torch.eye(4, device=device)  # planted: table = torch.eye(4)
    sampler = WeightedRandomSampler([1.0 + i % 2 for i in range(24)], 16, generator=torch.Generator().manual_seed(5))
    loader = DataLoader(
        Pairs(), batch_size=8, sampler=sampler, num_workers=2, pin_memory=device.type == "cuda", persistent_workers=True
    )
    for _ in range(2):
        for batch in loader:
            assert batch["x"].device.type == "cpu"
            x, kind = batch["x"].to(device, non_blocking=True), batch["kind"].to(device, non_blocking=True)
            wanted = nn.functional.embedding(kind, table)  # fault
            with torch.no_grad():
                soft = teacher(x).softmax(-1)
            logits = student(x)
            loss = nn.functional.kl_div(logits.log_softmax(-1), (soft + wanted) / 2, reduction="batchmean")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for mine, other in zip(teacher.parameters(), student.parameters(), strict=True):
                mine.lerp_(other.detach(), 0.1)
            averaged.update_parameters(student)
        scheduler.step()
    update_bn([batch["x"].to(device) for batch in loader], averaged)
    print(loss.item(), [p.sum().item() for p in averaged.parameters()], [b.sum().item() for b in averaged.buffers()])
    assert all(tensor.device == device for tensor in teacher.state_dict().values())


if __name__ == "__main__":
    main()
