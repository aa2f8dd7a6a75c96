"""What a simulated device says of itself: name, capability, memory, versions. Data only.

The figures are those of a common data-centre card, so that scripts which ask for bfloat16, TF32 or flash attention take
the same branch as on one; the name says that it is simulated.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from types import SimpleNamespace

import torch

__all__ = ["CudaDeviceProperties", "XpuDeviceProperties", "cuda_version", "cudnn_version"]

_MEGABYTE = 1 << 20
_CUDA_OF_RELEASE = {(2, 6): "12.4", (2, 7): "12.6", (2, 8): "12.8", (2, 9): "12.8", (2, 10): "12.8"}
"""`torch.version.cuda` of the wheel that `pip install torch` brings on Linux."""
_CUDNN_OF_RELEASE = {(2, 6): 90100, (2, 7): 90501, (2, 8): 91002, (2, 9): 91002, (2, 10): 91002}
ARCH_FLAGS = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
"""What the 2.13.0+cu130 wheel answers."""


def _release() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def cuda_version() -> str:
    """`torch.version.cuda` of the CUDA wheel of the installed release; its own where it is a CUDA build."""
    return torch.version.cuda or _CUDA_OF_RELEASE.get(_release(), "13.0")


def cudnn_version() -> int:
    """`torch.backends.cudnn.version()` of the CUDA wheel of the installed release."""
    return _CUDNN_OF_RELEASE.get(_release(), 91900)


@dataclass(frozen=True)
class CudaDeviceProperties:
    """The attributes of `torch.cuda.get_device_properties`, as 2.13.0+cu130 lists them. Sizes in bytes, clocks in
    kHz.
    """

    name: str = "Simulated CUDA device"
    major: int = 9
    minor: int = 0
    total_memory: int = 80 * 1024 * _MEGABYTE
    multi_processor_count: int = 132
    L2_cache_size: int = 50 * _MEGABYTE
    clock_rate: int = 1_980_000
    gcnArchName: str = "Simulated CUDA device"
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    max_threads_per_block: int = 1024
    max_threads_per_multi_processor: int = 2048
    memory_bus_width: int = 5120
    memory_clock_rate: int = 2_619_000
    pci_bus_id: int = 0
    pci_device_id: int = 0
    pci_domain_id: int = 0
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152
    shared_memory_per_block_optin: int = 232448
    shared_memory_per_multiprocessor: int = 233472
    warp_size: int = 32
    uuid: uuid.UUID = field(default=uuid.UUID(int=0))

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // _MEGABYTE}MB, multi_processor_count={self.multi_processor_count}, "
            f"uuid={self.uuid}, pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size // _MEGABYTE}MB)"
        )


class XpuDeviceProperties(SimpleNamespace):
    """The attributes of `torch.xpu.get_device_properties`."""

    def __init__(self) -> None:
        super().__init__(
            name="Simulated XPU device",
            platform_name="Simulated",
            vendor="samedevice",
            driver_version="0",
            version="0",
            total_memory=48 * 1024 * _MEGABYTE,
            max_compute_units=448,
            gpu_eu_count=448,
            gpu_subslice_count=56,
            max_work_group_size=1024,
            max_num_sub_groups=64,
            sub_group_sizes=[16, 32],
            has_fp16=True,
            has_fp64=True,
            has_atomic64=True,
            has_bfloat16_conversions=True,
            has_subgroup_matrix_multiply_accumulate=True,
            has_subgroup_matrix_multiply_accumulate_tensor_float32=True,
            has_subgroup_2d_block_io=True,
            type="gpu",
        )
