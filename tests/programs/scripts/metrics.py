# culprit: metrics.MulticlassAccuracy.tp
# operation: aten::add
# says: Expected all tensors to be on the same device
"""A collection of torchmetrics, moved and updated, reset, and computed over epochs."""

import torch
from torchmetrics import MeanMetric, MetricCollection, MetricTracker
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassAveragePrecision,
    MulticlassCalibrationError,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
)
from torchmetrics.regression import MeanSquaredError, PearsonCorrCoef, R2Score

device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
kinds = (MulticlassAccuracy, MulticlassAUROC, MulticlassF1Score, MulticlassConfusionMatrix, MulticlassAveragePrecision)
metrics = MetricCollection({kind.__name__: kind(num_classes=3) for kind in (*kinds, MulticlassCalibrationError)})
metrics = metrics.to(device)  # planted: metrics = metrics
tracked = MetricTracker(MeanSquaredError().to(device), maximize=False)
others = MetricCollection([PearsonCorrCoef(), R2Score()]).to(device)
mean = MeanMetric().to(device)
for _ in range(2):
    tracked.increment()
    for _ in range(2):
        scores = torch.randn(16, 3, device=device).softmax(-1)
        labels = torch.randint(3, (16,), device=device)
        metrics.update(scores, labels)  # fault
        values = torch.randn(16, device=device)
        others.update(values, values * 0.5 + torch.randn(16, device=device) * 0.1)
        tracked.update(values, values + 0.1)
        mean.update(values.mean())
    computed = {**metrics.compute(), **others.compute(), "mse": tracked.compute(), "mean": mean.compute()}
    assert all(value.device == device for value in computed.values())
    print({name: value.tolist() for name, value in computed.items()})
    metrics.reset()
print(tracked.best_metric())
