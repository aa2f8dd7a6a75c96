# culprit: trainer.state.scale
# operation: aten::mul
# says: Expected all tensors to be on the same device
"""An ignite trainer and evaluator with metrics, an average of the weights and a checkpoint."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EMAHandler
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, RunningAverage
from torch import nn

device = "cuda:0" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
optimizer = torch.optim.Adam(model.parameters())
criterion = nn.CrossEntropyLoss()
loader = [(torch.randn(4, 4), torch.randint(3, (4,))) for _ in range(3)]
trainer = create_supervised_trainer(model, optimizer, criterion, device=device)
metrics = {"accuracy": Accuracy(device=device), "loss": Loss(criterion, device=device)}
metrics["confusion"] = ConfusionMatrix(3, device=device)
evaluator = create_supervised_evaluator(model, metrics, device=device)
RunningAverage(output_transform=lambda loss: loss).attach(trainer, "running")
average = EMAHandler(model, momentum=0.1)
average.attach(trainer)


@trainer.on(Events.STARTED)
def prepare(engine):
    scale = torch.tensor([0.9, 0.5, 0.1])
    engine.state.scale = scale.to(device)  # planted: engine.state.scale = scale


@trainer.on(Events.ITERATION_COMPLETED)
def look(engine):
    scaled = model[2].bias * engine.state.scale  # fault
    assert str(scaled.device) == device


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(loader)
    print({name: torch.as_tensor(value).tolist() for name, value in evaluator.state.metrics.items()})


trainer.run(loader, max_epochs=2)
assert all(str(p.device) == device for p in average.ema_model.parameters())
print(trainer.state.metrics["running"])
