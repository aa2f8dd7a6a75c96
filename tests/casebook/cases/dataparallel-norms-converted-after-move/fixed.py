import torch
import torch.nn as nn


class RenormBatchNorm(nn.BatchNorm2d):
    def __init__(self, num_features, r_max=3.0, **kwargs):
        super().__init__(num_features, **kwargs)
        self.r_max = r_max

    def forward(self, x):
        return super().forward(x).clamp(-self.r_max, self.r_max)


def convert_norms(module):
    for name, child in module.named_children():
        if type(child) is nn.BatchNorm2d:
            new = RenormBatchNorm(child.num_features, eps=child.eps, momentum=child.momentum)
            new.load_state_dict(child.state_dict())
            setattr(module, name, new)
        else:
            convert_norms(child)
    return module


class Classifier(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(8, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        return self.fc(self.body(self.stem(x)).mean((2, 3)))


def main():
    torch.manual_seed(0)
    model = Classifier()
    model = convert_norms(model)
    if torch.cuda.is_available():
        model = model.cuda()
    model = nn.DataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(3):
        images = torch.rand(8, 3, 12, 12)
        labels = torch.randint(0, 3, (8,))
        if torch.cuda.is_available():
            images, labels = images.cuda(), labels.cuda()
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, round(loss.item(), 4))


main()
