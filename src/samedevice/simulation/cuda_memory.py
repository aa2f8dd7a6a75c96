"""Memory figures of simulated devices: what a caching allocator would hold for the tensors that say they are there.

Each labelled storage holds a `Block`; it is counted when it is made and counted out when it dies with its storage.
Sizes are rounded as PyTorch does (blocks of 512 bytes, segments of 2 MiB for small ones, 20 MiB or more for large
ones), and segments stay reserved until `empty_cache`. No memory is moved, and what kernels need in between is not
known: real peaks are higher. A block is made on each operator, so it counts in plain integers; everything else is
worked out when asked.

Source: c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize and following, 2.6 to 2.14.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from samedevice.simulation.calls import torch_version

__all__ = ["Block", "CachingAllocator", "active", "hold", "let_go", "raise_if_out_of_memory"]

_SMALL = 1 << 20
_SMALL_SEGMENT = 2 << 20
_LARGE_SEGMENT = 20 << 20
_ROUND_LARGE = 2 << 20
_SEPARATE = 10 << 20
_MANUAL = (
    f"https://{'docs.pytorch' if torch_version() >= (2, 9) else 'pytorch'}.org/docs/stable/notes/cuda.html"
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"
)
_ADVICE = (
    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
    f"fragmentation.  See documentation for Memory Management  ({_MANUAL})"
)
_XPU_ADVICE = "Please use `empty_cache` to release all unoccupied cached memory."
_HOST_REFUSED = re.compile(
    r"DefaultCPUAllocator: (?:can't allocate|not enough) memory: you tried to allocate (\d+) bytes"
)
_POOLS = ("all", "small_pool", "large_pool")


class _Pool:
    """Blocks of one size class, or of all: how many and how large, now, at most and ever; and what is reserved."""

    __slots__ = ("bytes", "bytes_ever", "bytes_peak", "count", "count_ever", "count_peak", "reserved", "segments")

    def __init__(self) -> None:
        self.count = self.count_peak = self.count_ever = 0
        self.bytes = self.bytes_peak = self.bytes_ever = 0
        self.reserved = _Figure()
        self.segments = _Figure()

    def figures(self) -> dict[str, dict[str, int]]:
        """By the names of `torch.cuda.memory_stats`."""
        counts = _parts(self.count, self.count_peak, self.count_ever)
        sums = _parts(self.bytes, self.bytes_peak, self.bytes_ever)
        return {
            **dict.fromkeys(("allocation", "active"), counts),
            **dict.fromkeys(("allocated_bytes", "active_bytes", "requested_bytes"), sums),
            "segment": self.segments.parts(),
            "reserved_bytes": self.reserved.parts(),
            **dict.fromkeys(("inactive_split", "inactive_split_bytes"), _parts(0, 0, 0)),
        }

    def reset_peaks(self) -> None:
        self.count_peak, self.bytes_peak = self.count, self.bytes
        self.reserved.peak, self.segments.peak = self.reserved.current, self.segments.current

    def reset_totals(self) -> None:
        self.count_ever, self.bytes_ever = self.count, self.bytes
        self.reserved.ever, self.segments.ever = self.reserved.current, self.segments.current


class _Figure:
    """A number that changes seldom."""

    __slots__ = ("current", "ever", "peak")

    def __init__(self) -> None:
        self.current = self.peak = self.ever = 0

    def add(self, amount: int) -> None:
        self.current += amount
        self.ever += max(0, amount)
        self.peak = max(self.peak, self.current)

    def parts(self) -> dict[str, int]:
        return _parts(self.current, self.peak, self.ever)


class Block:
    """Memory of one storage: counted from now until this object dies.

    Args:
        allocator: of the device.
        size: bytes that the storage asked for.
    """

    __slots__ = ("_pool", "_size", "_whole")

    def __init__(self, allocator: CachingAllocator, size: int) -> None:
        pool = allocator.small if size <= _SMALL else allocator.large
        whole = allocator.all
        size = (size + 511) & ~511
        self._pool, self._whole, self._size = pool, whole, size
        # Written out, with each sum read once: this runs on every operator.
        pool.count = count = pool.count + 1
        pool.bytes = held = pool.bytes + size
        pool.count_ever += 1
        pool.bytes_ever += size
        if count > pool.count_peak:
            pool.count_peak = count
        if held > pool.bytes_peak:
            pool.bytes_peak = held
        whole.count = count = whole.count + 1
        whole.bytes = held = whole.bytes + size
        whole.count_ever += 1
        whole.bytes_ever += size
        if count > whole.count_peak:
            whole.count_peak = count
        if held > whole.bytes_peak:
            whole.bytes_peak = held
        if pool.bytes > pool.reserved.current:
            allocator.reserve(pool, size)

    def __del__(self) -> None:
        size, pool, whole = self._size, self._pool, self._whole
        pool.count -= 1
        pool.bytes -= size
        whole.count -= 1
        whole.bytes -= size


class CachingAllocator:
    """What one device has allocated and reserved.

    Args:
        total: bytes of the device.
        index: its number.
        kind: "cuda", "xpu" …
    """

    def __init__(self, total: int, index: int = 0, kind: str = "cuda") -> None:
        self.index = index
        self.kind = kind
        self.total = total
        self.fraction = 1.0
        self.refusals = 0
        self.all, self.small, self.large = _Pool(), _Pool(), _Pool()

    def reserve(self, pool: _Pool, size: int) -> None:
        """Reserve a segment that holds a block of `size` bytes.

        Raises:
            torch.OutOfMemoryError: the device, or the part of it that may be used, is too small.
        """
        segment = _segment(size)
        if self.all.reserved.current + segment > self.allowed:
            # The new block is counted already.
            self.empty_cache()
            self._give_back(pool, pool.bytes - size)
            if self.all.reserved.current + segment > self.allowed:
                raise self.out_of_memory(size, self.all.bytes - size)
        for reserving in (pool, self.all):
            reserving.segments.add(1)
            reserving.reserved.add(segment)

    @property
    def allowed(self) -> int:
        """Bytes that may be reserved."""
        return int(self.total * self.fraction)

    def limit(self, fraction: float) -> None:
        """Let no more than a fraction of the device be reserved."""
        self.fraction = fraction

    def out_of_memory(self, size: int, allocated: int) -> Exception:
        """The error for `size` bytes that cannot be had beside those that are allocated.

        Source: c10/cuda/CUDACachingAllocator.cpp, 2.6 to 2.14, as the real CUDA build of 2.13 answered;
        c10/xpu/XPUCachingAllocator.cpp, 2.13; aten/src/ATen/mps/MPSAllocator.mm, 2.6 to 2.13.
        """
        self.refusals += 1
        if self.kind == "mps":
            return RuntimeError(
                f"MPS backend out of memory (MPS allocated: {_format(allocated)}, other allocations: 0 bytes, max "
                f"allowed: {_format(self.allowed)}). Tried to allocate {_format(size)} on private pool. Use "
                "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system "
                "failure)."
            )
        limited = "" if self.fraction == 1.0 else f" {_format(self.allowed)} allowed;"
        unallocated = max(0, self.all.reserved.current - allocated)
        asked = _segment(size) if self.kind == "xpu" else size
        return torch.OutOfMemoryError(
            f"{self.kind.upper()} out of memory. Tried to allocate {_format(asked)}. GPU {self.index} has a total "
            f"capacity of {_format(self.total)} of which {_format(self.free)} is free.{limited} Of the allocated "
            f"memory {_format(allocated)} is allocated by PyTorch, and {_format(unallocated)} is reserved by "
            f"PyTorch but unallocated. {_XPU_ADVICE if self.kind == 'xpu' else _ADVICE}"
        )

    def empty_cache(self) -> None:
        """Give back what no block needs."""
        for pool in (self.small, self.large):
            self._give_back(pool, pool.bytes)

    def _give_back(self, pool: _Pool, needed: int) -> None:
        step = _SMALL_SEGMENT if pool is self.small else _ROUND_LARGE
        unneeded = max(0, pool.reserved.current - -(-needed // step) * step)
        segments = 0 if needed else pool.segments.current
        for reserving in (pool, self.all):
            reserving.segments.add(-segments)
            reserving.reserved.add(-unneeded)

    def allocated(self) -> int:
        """Bytes in blocks that are in use."""
        return self.all.bytes

    @property
    def free(self) -> int:
        """Bytes of the device that are not reserved."""
        return max(0, self.total - self.all.reserved.current)

    def reset_peaks(self) -> None:
        """Peaks fall to what is current."""
        for pool in (self.all, self.small, self.large):
            pool.reset_peaks()

    def reset_accumulated(self) -> None:
        """Totals of what was allocated and freed start anew."""
        for pool in (self.all, self.small, self.large):
            pool.reset_totals()

    def stats(self) -> dict[str, Any]:
        """The figures in the shape of `torch._C._cuda_memoryStats`.

        Returns:
            statistic -> pool (all, small_pool, large_pool) -> current, peak, allocated, freed; in bytes where it says
            so.
        """
        plain = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free")
        oversize = ("oversize_allocations", "oversize_segments")
        pools = {name: pool.figures() for name, pool in zip(_POOLS, (self.all, self.small, self.large), strict=True)}
        return {
            **dict.fromkeys(plain, 0),
            "num_ooms": self.refusals,
            "max_split_size": -1,
            **{name: _parts(0, 0, 0) for name in oversize},
            **{name: {pool: dict(figures[name]) for pool, figures in pools.items()} for name in pools["all"]},
        }


def _segment(size: int) -> int:
    """Bytes that are reserved for a block, as `get_allocation_size` says."""
    if size <= _SMALL:
        return _SMALL_SEGMENT
    return _LARGE_SEGMENT if size < _SEPARATE else -(-size // _ROUND_LARGE) * _ROUND_LARGE


def _format(size: int) -> str:
    """As c10's `format_size`."""
    for exponent, unit in ((0, ""), (10, "KiB"), (20, "MiB"), (30, "GiB")):
        if size <= 1 << (exponent + 10) or exponent == 30:
            return f"{size / (1 << exponent):.2f} {unit}" if exponent else f"{size} bytes"
    raise AssertionError(size)


def _parts(current: int, peak: int, ever: int) -> dict[str, int]:
    return {"current": current, "peak": peak, "allocated": ever, "freed": ever - current}


active: tuple[CachingAllocator, ...] = ()
"""The running simulation's, one for each device."""


def raise_if_out_of_memory(error: RuntimeError, device: Any) -> None:
    """Where this machine's own memory does not suffice to stand in for the device's, the device's does not either.

    Args:
        error: as an operator raised it; nothing happens where it says something else.
        device: where its results were to go; None for the host.

    Raises:
        torch.OutOfMemoryError: the device's words.
    """
    said = _HOST_REFUSED.search(str(error))
    if said is not None and device is not None and device.index is not None and active:
        allocator = active[device.index]
        raise allocator.out_of_memory(int(said[1]), allocator.allocated()) from None


def hold(storage: Any, device: torch.device) -> None:
    """Count a storage for the device on which it is said to be, and no longer for another.

    Args:
        storage: an `UntypedStorage`.
        device: complete, one of the running simulation's.
    """
    size = storage.nbytes()
    if size and active:
        storage._samedevice_block = Block(active[device.index], size)


def let_go(storage: Any) -> None:
    """Count a storage no longer: it is on the host, whose memory is not counted, or nobody knows yet where.

    Args:
        storage: an `UntypedStorage`.
    """
    if hasattr(storage, "_samedevice_block"):
        del storage._samedevice_block
