# culprit: self.weights
# operation: aten::nll_loss_forward
# says: Expected all tensors to be on the same device
"""Lightning's Trainer on one GPU: training, validation with metrics, a checkpoint, a test run, a prediction."""

import tempfile
import warnings

import lightning
import torch
import torchmetrics
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        self.accuracy = torchmetrics.Accuracy("multiclass", num_classes=3)
        self.register_buffer("weights", torch.ones(3))  # planted: self.weights = torch.ones(3)
        self.losses = []

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self.layers(x), y, weight=self.weights)  # fault
        self.log("loss", loss)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.accuracy(self.layers(x), y)
        self.log("accuracy", self.accuracy, on_epoch=True)

    test_step = validation_step

    def predict_step(self, batch, index):
        return self.layers(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


lightning.seed_everything(0, verbose=False)
data = TensorDataset(torch.randn(12, 4), torch.randint(3, (12,)))
loader = DataLoader(data, batch_size=4)
model = Classifier()
with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        accelerator="gpu" if torch.cuda.is_available() else "cpu",
        devices=1,
        max_epochs=2,
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
        num_sanity_val_steps=0,
    )
    trainer.fit(model, loader, loader)
    if torch.cuda.is_available():
        assert trainer.strategy.root_device == torch.device("cuda:0")
    print([round(loss, 6) for loss in model.losses])
    print(trainer.test(model, loader, verbose=False))
    print([tuple(p.shape) for p in trainer.predict(model, loader)])
    again = Classifier.load_from_checkpoint(trainer.checkpoint_callback.best_model_path)
    print(again.layers[0].weight.flatten()[:3].tolist())
