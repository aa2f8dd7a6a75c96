"""Families of `diffusers`, `peft`, `einops` and `tensordict`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

CONVOLVED = ("aten::convolution", "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor)")
LOOKED_UP = ("aten::embedding", "index is on cpu")
BLOCKS = {"block_out_channels": (8, 16), "norm_num_groups": 4, "sample_size": 8}


def _noisy() -> dict[str, Any]:
    return {"sample": torch.randn(2, 3, 8, 8), "timestep": torch.tensor([3, 7])}


def _prompted() -> dict[str, Any]:
    return {**_noisy(), "encoder_hidden_states": torch.randn(2, 5, 16)}


def _unet() -> Any:
    from diffusers import UNet2DModel

    down, up = ("DownBlock2D", "AttnDownBlock2D"), ("AttnUpBlock2D", "UpBlock2D")
    return UNet2DModel(layers_per_block=1, down_block_types=down, up_block_types=up, **BLOCKS)


def _conditional_unet() -> Any:
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        cross_attention_dim=16,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        **BLOCKS,
    )


def _autoencoder() -> Any:
    from diffusers import AutoencoderKL

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    return AutoencoderKL(**blocks, **BLOCKS)


def _diffusion_transformer() -> Any:
    from diffusers import DiTTransformer2DModel

    return DiTTransformer2DModel(
        num_attention_heads=2, attention_head_dim=8, in_channels=3, num_layers=1, norm_num_groups=1, sample_size=8
    )


def _lora() -> Any:
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, **sizes))
    return get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False))


def _tokens() -> dict[str, Any]:
    tokens = torch.randint(3, 50, (2, 8))
    return {"input_ids": tokens, "labels": tokens.clone()}


def _patches() -> Any:
    from einops.layers.torch import Rearrange, Reduce

    cut = Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
    return nn.Sequential(cut, nn.Linear(48, 16), nn.GELU(), Reduce("b n d -> b d", "mean"), nn.Linear(16, 3))


def _of_dictionary() -> Any:
    from tensordict.nn import TensorDictModule, TensorDictSequential

    return TensorDictSequential(
        TensorDictModule(nn.Linear(4, 8), in_keys=["x"], out_keys=["hidden"]),
        TensorDictModule(nn.Linear(8, 3), in_keys=["hidden"], out_keys=["y"]),
    )


def _dictionary() -> dict[str, Any]:
    from tensordict import TensorDict

    return {"tensordict": TensorDict({"x": torch.randn(2, 4)}, batch_size=[2])}


def _entry(name: str, package: str, make: Any, batch: Any, planted: tuple[str, str, str], part: str) -> dict[str, Any]:
    behind, operation, words = planted
    entry = {"name": name, "package": package, "make": make, "batch": batch, "part": part}
    return {**entry, "behind": behind, "operation": operation, "words": words}


def _squared(output: Any) -> torch.Tensor:
    return getattr(output, "sample", output).square().mean()  # type: ignore[no-any-return]


SAMPLE = ("sample", *CONVOLVED)
STATES = ("encoder_hidden_states", "aten::mm", "mat2 is on cuda:1, different from other tensors on cpu")
GUIDED = {"timestep": torch.tensor([3, 7]), "class_labels": torch.tensor([1, 2])}

FAMILIES = [
    _entry("diffusers unet", "diffusers", _unet, _noisy, SAMPLE, "mid_block") | {"loss": _squared},
    _entry("diffusers conditional unet", "diffusers", _conditional_unet, _prompted, STATES, "time_embedding")
    | {"loss": _squared},
    _entry(
        "diffusers autoencoder",
        "diffusers",
        _autoencoder,
        lambda: {"sample": torch.randn(2, 3, 8, 8)},
        SAMPLE,
        "decoder.conv_out",
    )
    | {"loss": _squared},
    _entry(
        "diffusers dit",
        "diffusers",
        _diffusion_transformer,
        lambda: {"hidden_states": torch.randn(2, 3, 8, 8), **GUIDED},
        ("hidden_states", *CONVOLVED),
        "proj_out_1",
    )
    | {"loss": _squared},
    _entry(
        "peft lora",
        "peft",
        _lora,
        _tokens,
        ("input_ids", *LOOKED_UP),
        "base_model.model.model.layers.0.self_attn.q_proj.lora_A",
    ),
    _entry(
        "einops patches",
        "einops",
        _patches,
        lambda: {"input": torch.randn(2, 3, 8, 8)},
        ("input", "aten::addmm", "mat1 is on cpu"),
        "4",
    )
    | {"loss": _squared},
    _entry(
        "tensordict sequence",
        "tensordict",
        _of_dictionary,
        _dictionary,
        ("tensordict", "aten::addmm", "mat1 is on cpu"),
        "module.1",
    )
    | {"loss": lambda output: output["y"].square().mean()},
]
