"""Memory figures of simulated devices: what a caching allocator would hold for the tensors that say they are there.

The allocator is told of each storage when it gets its label and when it dies; it rounds as PyTorch's does (blocks of
512 bytes, segments of 2 MiB for small ones, 20 MiB or more for large ones) and keeps freed segments until
`empty_cache`. It moves no memory, splits no segments, and does not know what kernels need in between, so real peaks
are higher.

Source: c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize and following, 2.6 to 2.14.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CachingAllocator", "active"]

_BLOCK = 512
_SMALL = 1 << 20
_SMALL_SEGMENT = 2 << 20
_LARGE_SEGMENT = 20 << 20
_ROUND_LARGE = 2 << 20
_SEPARATE = 10 << 20


@dataclass(slots=True)
class _Figure:
    """One statistic of one pool, as `torch.cuda.memory_stats` names its parts."""

    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def add(self, amount: int) -> None:
        self.current += amount
        self.peak = max(self.peak, self.current)
        if amount > 0:
            self.allocated += amount
        else:
            self.freed -= amount

    def as_dict(self) -> dict[str, int]:
        return {"current": self.current, "peak": self.peak, "allocated": self.allocated, "freed": self.freed}


@dataclass(slots=True)
class _Pool:
    """The figures of one size class, or of all: how many blocks, how large, and the segments reserved for them."""

    blocks: _Figure = field(default_factory=_Figure)
    bytes: _Figure = field(default_factory=_Figure)
    requested: _Figure = field(default_factory=_Figure)
    segments: _Figure = field(default_factory=_Figure)
    reserved: _Figure = field(default_factory=_Figure)

    def hold(self, blocks: int, size: int, requested: int) -> None:
        self.blocks.add(blocks)
        self.bytes.add(size)
        self.requested.add(requested)

    def reserve(self, segments: int, size: int) -> None:
        self.segments.add(segments)
        self.reserved.add(size)

    def figures(self) -> tuple[_Figure, ...]:
        return self.blocks, self.bytes, self.requested, self.segments, self.reserved

    def by_name(self) -> dict[str, _Figure]:
        blocks, held, requested, segments, reserved = self.figures()
        whole = {"allocation": blocks, "active": blocks, "segment": segments, "inactive_split": _Figure()}
        in_bytes = {"allocated_bytes": held, "active_bytes": held, "requested_bytes": requested}
        return {**whole, **in_bytes, "reserved_bytes": reserved, "inactive_split_bytes": _Figure()}


class CachingAllocator:
    """What one device has allocated and reserved."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._all, self._small, self._large = _Pool(), _Pool(), _Pool()

    def add(self, size: int) -> None:
        """A storage of `size` bytes came to be on the device."""
        if not size:
            return
        block = -(-size // _BLOCK) * _BLOCK
        pool = self._small if size <= _SMALL else self._large
        pool.hold(1, block, size)
        self._all.hold(1, block, size)
        if pool.bytes.current > pool.reserved.current:
            self._reserve(pool, 1, self._segment(block))

    def remove(self, size: int) -> None:
        """A storage of `size` bytes died; its segment stays reserved."""
        if size:
            block = -(-size // _BLOCK) * _BLOCK
            (self._small if size <= _SMALL else self._large).hold(-1, -block, -size)
            self._all.hold(-1, -block, -size)

    def empty_cache(self) -> None:
        """Give back what no block needs."""
        for pool, step in ((self._small, _SMALL_SEGMENT), (self._large, _ROUND_LARGE)):
            needed = -(-pool.bytes.current // step) * step
            segments = 0 if needed else pool.segments.current
            self._reserve(pool, -segments, min(0, needed - pool.reserved.current))

    def allocated(self) -> int:
        """Bytes in blocks that are in use."""
        return self._all.bytes.current

    @property
    def free(self) -> int:
        """Bytes of the device that are not reserved."""
        return max(0, self.total - self._all.reserved.current)

    def reset_peaks(self) -> None:
        """Peaks fall to what is current."""
        for figure in self._figures():
            figure.peak = figure.current

    def reset_accumulated(self) -> None:
        """Totals of what was allocated and freed start at 0."""
        for figure in self._figures():
            figure.allocated = figure.freed = 0

    def stats(self) -> dict[str, object]:
        """The figures in the shape of `torch._C._cuda_memoryStats`.

        Returns:
            statistic -> pool (all, small_pool, large_pool) -> current, peak, allocated, freed; bytes where it says
            bytes.
        """
        plain = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free")
        stats: dict[str, object] = {**dict.fromkeys(plain, 0), "max_split_size": -1}
        for name in ("oversize_allocations", "oversize_segments"):
            stats[name] = _Figure().as_dict()
        pools = {"all": self._all, "small_pool": self._small, "large_pool": self._large}
        for name in self._all.by_name():
            stats[name] = {pool: figures.by_name()[name].as_dict() for pool, figures in pools.items()}
        return stats

    def _reserve(self, pool: _Pool, segments: int, size: int) -> None:
        pool.reserve(segments, size)
        self._all.reserve(segments, size)

    def _segment(self, block: int) -> int:
        if block <= _SMALL:
            return _SMALL_SEGMENT
        return _LARGE_SEGMENT if block < _SEPARATE else -(-block // _ROUND_LARGE) * _ROUND_LARGE

    def _figures(self) -> list[_Figure]:
        return [figure for pool in (self._all, self._small, self._large) for figure in pool.figures()]


active: tuple[CachingAllocator, ...] = ()
"""The running simulation's, one for each device."""
