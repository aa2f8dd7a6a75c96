import torch
import torch.nn as nn


class ExpectedCalibrationError:
    def __init__(self, n_bins=10):
        self.n_bins = n_bins
        self.reset()

    def reset(self):
        self.count = torch.zeros(self.n_bins)
        self.conf_sum = torch.zeros(self.n_bins)
        self.hit_sum = torch.zeros(self.n_bins)

    def update(self, logits, labels):
        confidence, prediction = logits.softmax(-1).max(-1)
        hits = prediction.eq(labels).float()
        bins = (confidence * self.n_bins).long().clamp(max=self.n_bins - 1)
        self.conf_sum.index_add_(0, bins, confidence)
        self.hit_sum.index_add_(0, bins, hits)
        self.count.index_add_(0, bins, torch.ones_like(confidence))

    def compute(self):
        used = self.count > 0
        gap = (self.conf_sum[used] - self.hit_sum[used]).abs() / self.count[used]
        return (gap * self.count[used]).sum() / self.count.sum()


def main():
    torch.manual_seed(4)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(10, 4).to(device)
    ece = ExpectedCalibrationError()
    model.eval()
    with torch.inference_mode():
        for _ in range(3):
            x = torch.randn(32, 10)
            y = torch.randint(0, 4, (32,))
            ece.update(model(x.to(device)), y.to(device))
    print(f"ECE {ece.compute().item():.4f}")


main()
