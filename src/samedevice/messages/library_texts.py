"""What libraries around PyTorch, and its distributed part, say about devices.

Data only; `templates.py` tells how to read it.
"""

from __future__ import annotations

from samedevice.messages.template import Template

__all__ = ["LIBRARY_TEXTS"]

LIBRARY_TEXTS = (
    # Source: triton/runtime, the launcher's check of pointers.
    Template(
        "triton-pointer",
        "Pointer argument (at {index}) cannot be accessed from Triton (cpu tensor?)",
        exception="ValueError",
        places=(("argument {index}", "=cpu"), ("others", "=cuda")),
    ),
    # Source: the CHECK_CUDA of PyTorch's guide to custom extensions, copied into most of them.
    Template("must-be-cuda", "{argument} must be a CUDA tensor", places=(("{argument}", "=cpu"), ("others", "=cuda"))),
    Template("must-be-cuda", "{argument} must be on CUDA", places=(("{argument}", "=cpu"), ("others", "=cuda"))),
    # Source: torch/csrc/distributed/c10d, ProcessGroupNCCL.cpp and ProcessGroup.hpp.
    Template("process-group-device", "No backend type associated with device type {device}"),
    Template("process-group-device", "Tensors must be CUDA and dense"),
    Template("process-group-device", "Tensors must be on distinct GPU devices"),
    Template(
        "one-device-for-two-ranks", "Duplicate GPU detected : rank {index} and rank {other_index} both on CUDA device"
    ),
    # Source: torchmetrics/metric.py, `_wrap_update`.
    Template(
        "metric-device",
        "Encountered different devices in metric calculation (see stacktrace for details).",
        cause="metric-state",
    ),
    # Source: transformers/generation/utils.py, a warning of `generate`.
    Template(
        "generate-inputs",
        "`input_ids` is on {device}, whereas the model is on {other_device}.",
        exception="UserWarning",
        places=(("input_ids", "device"), ("model", "other_device")),
        cause="input-not-moved",
    ),
    # Source: torch/nn/modules/module.py, `__setattr__`: `self.weight = self.weight.cuda()`.
    Template(
        "tensor-for-parameter",
        "cannot assign 'torch.cuda.{tensor_type}' as parameter '{argument}' (torch.nn.Parameter or None expected)",
        exception="TypeError",
    ),
)
