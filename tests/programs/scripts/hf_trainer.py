# culprit: self.weights
# operation: aten::nll_loss_forward
# says: Expected all tensors to be on the same device
"""The Trainer of transformers, with a data set in memory, evaluation and a loss of one's own."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)


class Sentences(Dataset):
    def __init__(self, count):
        self.tokens = torch.randint(3, 40, (count, 8), generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index].sum() % 2}


class Weighted(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.weights = torch.tensor([0.4, 0.6]).to(self.args.device)  # planted: self.weights = torch.tensor([0.4, 0.6])

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(outputs.logits, labels, weight=self.weights)  # fault
        return (loss, outputs) if return_outputs else loss


set_seed(0)
config = BertConfig(
    vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=2
)
model = BertForSequenceClassification(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=4,
        per_device_train_batch_size=4,
        eval_strategy="steps",
        eval_steps=2,
        save_steps=2,
        logging_steps=1,
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    if torch.cuda.is_available():
        assert arguments.n_gpu == torch.cuda.device_count()
        arguments._n_gpu = 1  # else it would use DataParallel, and batches of another size
    trainer = Weighted(model, arguments, train_dataset=Sentences(16), eval_dataset=Sentences(8))
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    trainer.train(resume_from_checkpoint=f"{folder}/checkpoint-2")
    print([round(entry["loss"], 5) for entry in trainer.state.log_history if "loss" in entry])
    print(round(trainer.evaluate()["eval_loss"], 6))
    print(trainer.predict(Sentences(4)).predictions.round(4).tolist())
assert all(p.device == arguments.device for p in model.parameters())
