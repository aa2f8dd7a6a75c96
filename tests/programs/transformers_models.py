"""Families of `transformers`, made from configurations: no network, no pretrained weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
HALVES = {
    f"{half}_{name}": value
    for half in ("encoder", "decoder")
    for name, value in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 32))
}
SEQUENCE = {"d_model": 16, "vocab_size": 50, "decoder_start_token_id": 1, "pad_token_id": 0, **HALVES}
GROUPED = {"num_key_value_heads": 1, "head_dim": 8}
IMAGE = {"image_size": 16, "patch_size": 8}
LOOKED_UP = ("aten::embedding", "index is on cpu")
CONVOLVED = ("aten::convolution", "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor)")


def _make(model: str, config: str, **sizes: Any) -> Callable[[], Any]:
    def make() -> Any:
        import transformers

        return getattr(transformers, model)(getattr(transformers, config)(**sizes))

    return make


def _tokens() -> dict[str, Any]:
    tokens = torch.randint(3, 50, (2, 8))
    return {"input_ids": tokens, "labels": tokens.clone()}


def _image(size: int, labels: Callable[[], Any] = lambda: torch.tensor([0, 1])) -> Callable[[], dict[str, Any]]:
    return lambda: {"pixel_values": torch.randn(2, 3, size, size), "labels": labels()}


def _boxes() -> list[dict[str, Any]]:
    return [{"class_labels": torch.tensor([label]), "boxes": torch.tensor([[0.5, 0.4, 0.2, 0.3]])} for label in (1, 2)]


def _picture_and_text() -> dict[str, Any]:
    tokens = torch.cat([torch.full((2, 4), 7), torch.randint(8, 50, (2, 4))], 1)
    return {"input_ids": tokens, "labels": tokens.clone(), "pixel_values": torch.randn(2, 3, 16, 16)}


def _texts(name: str, model: str, config: str, part: str, **sizes: Any) -> dict[str, Any]:
    """A model that reads tokens."""
    sizes = {"vocab_size": 50, **sizes}
    made = _make(model, config, **sizes)
    return _entry(name, made, _tokens, ("input_ids", *LOOKED_UP), part)


def _entry(name: str, make: Any, batch: Any, planted: tuple[str, str, str], part: str, **more: Any) -> dict[str, Any]:
    behind, operation, words = planted
    entry = {"name": name, "package": "transformers", "make": make, "batch": batch, "part": part}
    return {**entry, "behind": behind, "operation": operation, "words": words, **more}


PIXELS = ("pixel_values", *CONVOLVED)

FAMILIES = [
    _texts("bert", "BertForMaskedLM", "BertConfig", "bert.encoder.layer.1.output.dense", **SIZES),
    _texts("gpt2", "GPT2LMHeadModel", "GPT2Config", "transformer.h.1.mlp.c_fc", n_embd=16, n_layer=2, n_head=2),
    _texts("llama", "LlamaForCausalLM", "LlamaConfig", "model.layers.1.mlp.up_proj", **SIZES),
    _texts("mistral", "MistralForCausalLM", "MistralConfig", "model.norm", **SIZES, **GROUPED),
    _texts(
        "qwen2", "Qwen2ForCausalLM", "Qwen2Config", "model.layers.0.self_attn.q_proj", **SIZES, num_key_value_heads=1
    ),
    _texts("qwen3", "Qwen3ForCausalLM", "Qwen3Config", "model.layers.0.self_attn.q_norm", **SIZES, **GROUPED),
    _texts("gemma2", "Gemma2ForCausalLM", "Gemma2Config", "model.layers.1", **SIZES, **GROUPED),
    _texts("phi3", "Phi3ForCausalLM", "Phi3Config", "lm_head", **SIZES, pad_token_id=0),
    _texts("bloom", "BloomForCausalLM", "BloomConfig", "transformer.ln_f", hidden_size=16, n_layer=2, n_head=2),
    _texts("falcon", "FalconForCausalLM", "FalconConfig", "transformer.h.0.mlp", **SIZES),
    _texts(
        "deberta-v2",
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        "deberta.encoder.rel_embeddings",
        **SIZES,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=4,
    ),
    _texts("xlnet", "XLNetLMHeadModel", "XLNetConfig", "lm_loss", d_model=16, n_layer=2, n_head=2, d_inner=32),
    _texts(
        "longformer",
        "LongformerForMaskedLM",
        "LongformerConfig",
        "longformer.encoder.layer.0.attention.self.query",
        **SIZES,
        attention_window=4,
        max_position_embeddings=40,
    ),
    _texts(
        "mixtral (experts)",
        "MixtralForCausalLM",
        "MixtralConfig",
        "model.layers.0.mlp",
        **SIZES,
        num_key_value_heads=1,
        num_local_experts=4,
    ),
    _texts(
        "qwen2-moe (experts)",
        "Qwen2MoeForCausalLM",
        "Qwen2MoeConfig",
        "model.layers.1.mlp.shared_expert",
        **SIZES,
        num_key_value_heads=1,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
    ),
    _texts(
        "mamba",
        "MambaForCausalLM",
        "MambaConfig",
        "backbone.layers.1.mixer.conv1d",
        hidden_size=16,
        num_hidden_layers=2,
        state_size=4,
    ),
    _texts(
        "mamba2",
        "Mamba2ForCausalLM",
        "Mamba2Config",
        "backbone.layers.0.mixer.out_proj",
        hidden_size=16,
        num_hidden_layers=2,
        state_size=4,
        num_heads=4,
        head_dim=8,
        n_groups=1,
    ),
    _texts(
        "rwkv",
        "RwkvForCausalLM",
        "RwkvConfig",
        "rwkv.blocks.1.feed_forward",
        hidden_size=16,
        num_hidden_layers=2,
        attention_hidden_size=16,
        context_length=32,
    ),
    _texts(
        "t5",
        "T5ForConditionalGeneration",
        "T5Config",
        "decoder.block.0",
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
    ),
    _texts("bart", "BartForConditionalGeneration", "BartConfig", "model.decoder.layers.0.fc1", **SEQUENCE),
    # Draws its hashes anew, with a seed of its own on a device.
    _texts(
        "reformer (reversible)",
        "ReformerModelWithLMHead",
        "ReformerConfig",
        "lm_head",
        hidden_size=16,
        attention_head_size=8,
        num_attention_heads=2,
        feed_forward_size=32,
        is_decoder=True,
        axial_pos_shape=[2, 4],
        axial_pos_embds_dim=[8, 8],
        attn_layers=["local", "lsh"],
        local_attn_chunk_length=4,
        lsh_attn_chunk_length=4,
        num_buckets=2,
        max_position_embeddings=8,
    )
    | {"repeatable": False},
    _entry("vit", _make("ViTForImageClassification", "ViTConfig", **SIZES, **IMAGE), _image(16), PIXELS, "classifier"),
    _entry(
        "swin",
        _make(
            "SwinForImageClassification",
            "SwinConfig",
            embed_dim=8,
            depths=[1, 2],
            num_heads=[1, 2],
            window_size=2,
            image_size=32,
            patch_size=4,
        ),
        _image(32),
        PIXELS,
        "swin.layernorm",
    ),
    _entry(
        "convnext-v2",
        _make("ConvNextV2ForImageClassification", "ConvNextV2Config", hidden_sizes=[8] * 4, depths=[1] * 4),
        _image(32),
        PIXELS,
        "convnextv2.encoder.stages.1",
    ),
    _entry(
        "segformer",
        _make(
            "SegformerForSemanticSegmentation",
            "SegformerConfig",
            hidden_sizes=[8] * 4,
            depths=[1] * 4,
            num_attention_heads=[1] * 4,
            decoder_hidden_size=8,
            num_labels=3,
        ),
        _image(32, lambda: torch.randint(0, 3, (2, 32, 32))),
        PIXELS,
        "decode_head.batch_norm",
    ),
    _entry(
        "detr",
        _make(
            "DetrForObjectDetection",
            "DetrConfig",
            d_model=16,
            **HALVES,
            num_queries=4,
            backbone_config={
                "model_type": "resnet",
                "embedding_size": 8,
                "hidden_sizes": [8, 8],
                "depths": [1, 1],
                "out_features": ["stage2"],
            },
        ),
        _image(32, _boxes),
        PIXELS,
        "class_labels_classifier",
    ),
    _entry(
        "videomae",
        _make("VideoMAEForVideoClassification", "VideoMAEConfig", **SIZES, **IMAGE, num_frames=4),
        lambda: {"pixel_values": torch.randn(2, 4, 3, 16, 16), "labels": torch.tensor([0, 1])},
        PIXELS,
        "fc_norm",
    ),
    _entry(
        "clip",
        _make(
            "CLIPModel",
            "CLIPConfig",
            text_config={**SIZES, "vocab_size": 50},
            vision_config={**SIZES, **IMAGE},
            projection_dim=8,
        ),
        lambda: {**_image(16)(), **_tokens(), "return_loss": True},
        PIXELS,
        "visual_projection",
    ),
    _entry(
        "llava",
        _make(
            "LlavaForConditionalGeneration",
            "LlavaConfig",
            text_config={**SIZES, "model_type": "llama", "vocab_size": 50},
            vision_config={**SIZES, **IMAGE, "model_type": "clip_vision_model"},
            image_token_index=7,
            vision_feature_layer=-1,
        ),
        _picture_and_text,
        PIXELS,
        "model.multi_modal_projector",
    ),
    _entry(
        "whisper",
        _make(
            "WhisperForConditionalGeneration",
            "WhisperConfig",
            **SEQUENCE,
            num_mel_bins=8,
            max_source_positions=10,
            max_target_positions=16,
            bos_token_id=1,
            eos_token_id=2,
        ),
        lambda: {"input_features": torch.randn(2, 8, 20), "labels": torch.randint(3, 50, (2, 8))},
        ("input_features", *CONVOLVED),
        "model.decoder.layer_norm",
    ),
    _entry(
        "wav2vec2",
        _make(
            "Wav2Vec2ForCTC",
            "Wav2Vec2Config",
            **SIZES,
            vocab_size=50,
            conv_dim=(8, 8),
            conv_stride=(2, 2),
            conv_kernel=(3, 3),
            num_feat_extract_layers=2,
            num_conv_pos_embeddings=4,
            num_conv_pos_embedding_groups=2,
            mask_time_length=2,
        ),
        lambda: {"input_values": torch.randn(2, 200), "labels": torch.randint(1, 50, (2, 4))},
        ("input_values", *CONVOLVED),
        "wav2vec2.feature_projection",
    ),
    _entry(
        "patchtst",
        _make(
            "PatchTSTForPrediction",
            "PatchTSTConfig",
            context_length=16,
            patch_length=4,
            patch_stride=4,
            num_input_channels=2,
            d_model=16,
            num_attention_heads=2,
            num_hidden_layers=1,
            ffn_dim=32,
            prediction_length=4,
        ),
        lambda: {"past_values": torch.randn(2, 16, 2), "future_values": torch.randn(2, 4, 2)},
        ("past_values", "aten::addmm", "mat1 is on cpu"),
        "head",
    ),
]
