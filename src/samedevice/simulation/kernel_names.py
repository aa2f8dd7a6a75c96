"""How CUDA's kernels call themselves where the CPU's have other names: a type that neither takes is refused in them.

Names of the rule, `add_cpu` for `add_cuda`, are no matter of this table but of `type_texts.py`, which reads it.

Source: the AT_DISPATCH macros in aten/src/ATen/native/cuda, as the real CUDA build of 2.13 answered.
"""

from __future__ import annotations

__all__ = ["KERNELS"]

_NAMES = {
    "addmm_cuda": ("mm", "addmm", "addmm_", "addbmm", "addbmm_", "conv_tbc"),
    "baddbmm_cuda": ("bmm", "baddbmm", "baddbmm_"),
    "addmv_impl_cuda": ("mv", "addmv", "addmv_"),
    "dot": ("dot", "vdot"),
    "avg_pool2d_out_cuda_frame": ("avg_pool2d",),
    "avg_pool3d_out_cuda": ("avg_pool3d",),
    "max_pool2d_with_indices_out_cuda_frame": ("max_pool2d_with_indices",),
    "max_pool3d_with_indices_out_frame": ("max_pool3d_with_indices",),
    "adaptive_avg_pool2d_cuda": ("_adaptive_avg_pool2d",),
    "adaptive_max_pool2d_cuda": ("adaptive_max_pool2d",),
    "max_unpooling2d_forward_kernel": ("max_unpool2d",),
    "upsample_nearest1d_out_frame": ("upsample_nearest1d", "_upsample_nearest_exact1d"),
    "upsample_nearest2d_out_frame": ("upsample_nearest2d", "_upsample_nearest_exact2d"),
    "upsample_nearest3d_out_frame": ("upsample_nearest3d", "_upsample_nearest_exact3d"),
    "upsample_linear1d_out_frame": ("upsample_linear1d",),
    "upsample_bilinear2d_out_frame": ("upsample_bilinear2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
    "upsample_bicubic2d_out_frame": ("upsample_bicubic2d",),
    "upsample_trilinear3d_out_frame": ("upsample_trilinear3d",),
    "grid_sampler_2d_cuda": ("grid_sampler_2d",),
    "reflection_pad1d_out": ("reflection_pad1d",),
    "reflection_pad2d_out_template": ("reflection_pad2d",),
    "reflection_pad3d_out_cuda": ("reflection_pad3d",),
    "replication_pad1d_cuda": ("replication_pad1d",),
    "replication_pad2d_cuda": ("replication_pad2d",),
    "replication_pad3d_cuda": ("replication_pad3d",),
    "host_softmax": ("_softmax", "_log_softmax"),
    "batch_norm_stats_cuda": ("native_batch_norm",),
    "GeluCUDAKernelImpl": ("gelu",),
    "log_sigmoid_forward_cuda": ("log_sigmoid_forward",),
    "binary_cross_entropy_out_cuda": ("binary_cross_entropy",),
    "nll_loss_forward_reduce_cuda_kernel_2d": ("nll_loss_forward",),
    "multi_margin_loss_cuda": ("multi_margin_loss",),
    "cdist_cuda": ("_cdist_forward",),
    "pdist_cuda": ("_pdist_forward",),
    "logcumsumexp_cuda": ("_logcumsumexp",),
    "cuda_mode": ("mode",),
    "cross_cuda": ("linalg_cross",),
    "index_reduce": ("index_reduce", "index_reduce_"),
    "lerp_cuda": ("lerp", "lerp_"),
    "addcmul_cuda": ("addcmul", "addcmul_"),
    "histc": ("histc",),
    "igamma_cuda": ("igamma", "igamma_"),
    "igammac_cuda": ("igammac", "igammac_"),
    "angle_cuda": ("angle",),
    "lu_factor_cusolver": ("linalg_lu_factor_ex", "linalg_lu", "_linalg_solve_ex", "_linalg_det", "_linalg_slogdet"),
}
KERNELS = {f"aten::{name}": kernel for kernel, names in _NAMES.items() for name in names}
"""Operator -> how its kernel on CUDA calls itself."""
