# culprit: self.favoured
# operation: aten::add
# says: Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cpu!
"""`generate()` of transformers on the second device: greedy, sampled, by beams, with encoder and decoder."""

import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    LogitsProcessorList,
    StoppingCriteriaList,
    set_seed,
)

device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")
set_seed(0)
config = LlamaConfig(
    vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, eos_token_id=None
)
model = LlamaForCausalLM(config).to(device).eval()
prompt = torch.randint(3, 40, (2, 5)).to(device)
attention = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], device=device)


class Favour:
    def __init__(self, words):
        favoured = torch.zeros(40)
        favoured[words] = 2.0
        self.favoured = favoured.to(device)  # planted: self.favoured = favoured

    def __call__(self, ids, scores):
        return scores + self.favoured  # fault


ways = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True, "top_k": 10, "top_p": 0.9, "temperature": 0.8},
    "beams": {"num_beams": 3, "num_return_sequences": 2},
    "sampled beams": {"num_beams": 2, "do_sample": True},
    "penalised": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
    "favoured": {"logits_processor": LogitsProcessorList([Favour([5, 6])])},
    "stopped": {"stopping_criteria": StoppingCriteriaList([lambda ids, scores: ids[:, -1] == 7])},
    "static cache": {"cache_implementation": "static"},
    "scores": {"return_dict_in_generate": True, "output_scores": True},
}
for name, way in ways.items():
    generated = model.generate(prompt, attention_mask=attention, max_new_tokens=6, pad_token_id=0, **way)
    tokens = getattr(generated, "sequences", generated)
    assert tokens.device == device, name
    print(name, tokens.tolist())

halves = {
    f"{half}_{key}": value
    for half in ("encoder", "decoder")
    for key, value in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 32))
}
bart = BartForConditionalGeneration(
    BartConfig(
        d_model=16, vocab_size=40, forced_eos_token_id=None, eos_token_id=None, decoder_start_token_id=1, **halves
    )
)
bart.to(device).eval()
print("bart", bart.generate(prompt, max_new_tokens=5, num_beams=2).tolist())
