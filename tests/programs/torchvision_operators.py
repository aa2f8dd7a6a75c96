"""Makes `import torchvision` work beside a CPU build of PyTorch.

Its wheels for Linux hold operators for CUDA only, which such a build cannot load; without them neither torchvision nor
what imports it (timm, parts of transformers) can be imported. Here the operators that importing and detecting ask for
are defined in Python. To be imported before anything imports torchvision.
"""

import importlib.util
from pathlib import Path


def define():
    """Define the operators where torchvision is installed and its own cannot be loaded."""
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None:
        return
    import torch

    library = Path(found.origin).with_name("_C.so")
    try:
        if library.exists():
            torch.ops.load_library(library)
    except OSError:
        _define_in_python(torch.library)


def _define_in_python(library):
    for name in ("nms", "qnms"):
        library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.impl(f"torchvision::{name}", "CompositeExplicitAutograd", _suppress)
    import torchvision

    # Its own reference, without the compilation around it.
    names = torchvision.ops.roi_align.__globals__
    align = names["_roi_align"].__wrapped__
    arguments = "Tensor input, Tensor rois, float scale, SymInt height, SymInt width, int ratio, bool aligned"
    library.define("torchvision::roi_align", f"({arguments}) -> Tensor")
    library.impl("torchvision::roi_align", "CompositeImplicitAutograd", align)
    # What the functions ask whether there are operators.
    torchvision.extension._has_ops = names["_has_ops"] = lambda: True


def _suppress(boxes, scores, iou_threshold):
    """Non-maximum suppression: the best box of each group that overlaps."""
    from torchvision.ops import box_iou

    kept = []
    waiting = scores.argsort(descending=True, stable=True)
    while len(waiting):
        best, waiting = waiting[0], waiting[1:]
        kept.append(best)
        waiting = waiting[box_iou(boxes[best][None], boxes[waiting])[0] <= iou_threshold]
    return waiting.new_tensor([int(index) for index in kept])
