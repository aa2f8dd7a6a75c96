"""Families of `timm`: convolutional and attentive image models, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

CONVOLVED = ("aten::convolution", "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor)")


def _entry(name: str, part: str, size: int = 32, **sizes: Any) -> dict[str, Any]:
    operation, words = CONVOLVED
    return {
        "name": f"timm {name}",
        "package": "timm",
        "make": _make(name, num_classes=3, **sizes),
        "batch": lambda: {"x": torch.randn(2, 3, size, size)},
        "loss": lambda output: F.cross_entropy(output, torch.tensor([0, 2], device=output.device)),
        "behind": "x",
        "operation": operation,
        "words": words,
        "part": part,
    }


def _make(name: str, **sizes: Any) -> Callable[[], Any]:
    def make() -> Any:
        import timm

        return timm.create_model(name, **sizes)

    return make


ATTENTIVE = {"img_size": 16, "patch_size": 8, "embed_dim": 16, "depth": 2, "num_heads": 2}

FAMILIES = [
    _entry("resnet10t", "layer3"),
    _entry("resnetv2_50", "head", layers=[1, 1], channels=[16, 32], stem_chs=8),
    _entry("convnext_atto", "stages.1", depths=[1] * 4, dims=[8] * 4),
    _entry("efficientnet_b0", "bn2"),
    _entry("mobilenetv3_small_050", "blocks.2"),
    _entry("regnetx_002", "s4"),
    _entry("densenet121", "features.norm5", block_config=(1, 1), growth_rate=4),
    _entry("vit_tiny_patch16_224", "blocks.1.attn.qkv", 16, **ATTENTIVE),
    _entry("deit_tiny_patch16_224", "head", 16, **ATTENTIVE),
    _entry(
        "swin_tiny_patch4_window7_224",
        "layers.1",
        embed_dim=8,
        depths=(1, 2),
        num_heads=(1, 2),
        img_size=32,
        window_size=4,
    ),
    _entry("mobilevit_xxs", "stages.2"),
    _entry("edgenext_xx_small", "stages.3.downsample.0"),
]
