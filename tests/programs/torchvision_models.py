"""Families of torchvision: classification, segmentation, and detection with its boxes as targets."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

CONVOLVED = ("aten::convolution", "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor)")


def _entry(name: str, make: Any, batch: Any, planted: tuple[str, str, str], part: str, loss: Any) -> dict[str, Any]:
    behind, operation, words = planted
    entry = {"name": f"torchvision {name}", "package": "torchvision", "make": make, "batch": batch, "part": part}
    return {**entry, "behind": behind, "operation": operation, "words": words, "loss": loss}


def _pictures() -> dict[str, Any]:
    return {"x": torch.randn(2, 3, 32, 32)}


def _scene() -> dict[str, Any]:
    boxes = torch.tensor([[4.0, 4.0, 20.0, 24.0]])
    targets = [{"boxes": boxes + i, "labels": torch.tensor([i + 1])} for i in range(2)]
    return {"images": [torch.rand(3, 40, 48), torch.rand(3, 36, 40)], "targets": targets}


def _classified(output: Any) -> torch.Tensor:
    return F.cross_entropy(output, torch.tensor([0, 2], device=output.device))


def _resnet() -> Any:
    import torchvision

    return torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=3)


def _shuffled() -> Any:
    import torchvision

    return torchvision.models.ShuffleNetV2([1, 1, 1], [8, 16, 24, 32, 32], num_classes=3)


def _segmenting() -> Any:
    import torchvision

    backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2, 1), torch.nn.ReLU())
    picked = torchvision.models._utils.IntermediateLayerGetter(backbone, {"1": "out"})
    head = torchvision.models.segmentation.fcn.FCNHead(8, 3)
    return torchvision.models.segmentation.FCN(picked, head)


def _backbone() -> Any:
    backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 4, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, 2, 1))
    backbone.out_channels = 8
    return backbone


def _faster_rcnn() -> Any:
    from torchvision.models.detection import FasterRCNN, rpn
    from torchvision.ops import MultiScaleRoIAlign

    anchors = rpn.AnchorGenerator(((8, 16),), ((0.5, 1.0),))
    pooled = MultiScaleRoIAlign(["0"], 3, 2)
    sizes = {"min_size": 40, "max_size": 48, "rpn_pre_nms_top_n_train": 30, "rpn_post_nms_top_n_train": 10}
    return FasterRCNN(_backbone(), 3, rpn_anchor_generator=anchors, box_roi_pool=pooled, **sizes)


def _retina_net() -> Any:
    from torchvision.models.detection import RetinaNet, anchor_utils

    anchors = anchor_utils.AnchorGenerator(((8, 16),), ((0.5, 1.0),))
    return RetinaNet(_backbone(), 3, anchor_generator=anchors, min_size=40, max_size=48)


PICTURES = ("x", *CONVOLVED)
SCENE = ("targets", "aten::maximum", "Expected all tensors to be on the same device")

FAMILIES = [
    _entry("resnet", _resnet, _pictures, PICTURES, "layer2", _classified),
    _entry("shufflenet", _shuffled, _pictures, PICTURES, "fc", _classified),
    _entry("fcn", _segmenting, _pictures, PICTURES, "classifier", lambda output: output["out"].square().mean()),
    _entry("faster r-cnn", _faster_rcnn, _scene, SCENE, "roi_heads.box_predictor", lambda losses: sum(losses.values())),
    _entry("retinanet", _retina_net, _scene, SCENE, "head.regression_head", lambda losses: sum(losses.values())),
]
