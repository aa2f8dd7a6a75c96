# culprit: hidden
# operation: aten::native_layer_norm
# says: different from other tensors
"""A transformer whose first layers are on one device and whose last layers are on another."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

two = torch.cuda.device_count() > 1
first, second = ("cuda:0", "cuda:1") if two else ("cpu", "cpu")
torch.manual_seed(0)
config = GPT2Config(n_embd=16, n_layer=4, n_head=2, vocab_size=40, bos_token_id=1, eos_token_id=2)
model = GPT2LMHeadModel(config).train()
place = {"transformer.wte": first, "transformer.wpe": first, "transformer.drop": first}
place |= {f"transformer.h.{i}": first if i < 2 else second for i in range(4)} | {"transformer.ln_f": second}
for name, device in place.items():
    model.get_submodule(name).to(device)
head = torch.nn.Linear(16, 40, bias=False).to(second)
blocks = model.transformer
optimizer = torch.optim.AdamW([*blocks.parameters(), *head.parameters()], lr=1e-2)
for _ in range(3):
    tokens = torch.randint(40, (2, 6), device=first)
    places = torch.arange(6, device=first)
    hidden = blocks.drop(blocks.wte(tokens) + blocks.wpe(places))
    for index, block in enumerate(blocks.h):
        hidden = hidden.to(place[f"transformer.h.{index}"])  # planted: hidden = hidden
        hidden = block(hidden)  # fault
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
    logits = head(blocks.ln_f(hidden))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten().to(second))
    loss.backward()
    torch.nn.utils.clip_grad_norm_([*blocks.parameters(), *head.parameters()], 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
for parameter in blocks.h[0].parameters():
    assert str(parameter.device) == first
    assert str(optimizer.state[parameter]["exp_avg"].device) == first
