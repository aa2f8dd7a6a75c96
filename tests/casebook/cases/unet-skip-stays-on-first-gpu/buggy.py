import torch
import torch.nn as nn


def block(n_in, n_out):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, padding=1), nn.GroupNorm(2, n_out), nn.ReLU(inplace=True))


class SplitUNet(nn.Module):
    def __init__(self, first, second, width=8):
        super().__init__()
        self.first, self.second = first, second
        self.down1 = block(1, width).to(first)
        self.down2 = block(width, 2 * width).to(first)
        self.bottom = block(2 * width, 2 * width).to(second)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2).to(second)
        self.merge = block(2 * width, width).to(second)
        self.out = nn.Conv2d(width, 2, 1).to(second)

    def forward(self, x):
        skip = self.down1(x.to(self.first))
        x = self.down2(nn.functional.max_pool2d(skip, 2))
        x = self.bottom(x.to(self.second))
        x = self.up(x)
        x = self.merge(torch.cat([x, skip], dim=1))
        return self.out(x)


def main():
    torch.manual_seed(10)
    if torch.cuda.device_count() > 1:
        first, second = torch.device("cuda:0"), torch.device("cuda:1")
    else:
        first = second = torch.device("cpu")
    model = SplitUNet(first, second)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in range(3):
        scans = torch.randn(2, 1, 16, 16)
        masks = (scans[:, 0] > 0).long().to(second)
        loss = nn.functional.cross_entropy(model(scans), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, round(loss.item(), 4))


main()
