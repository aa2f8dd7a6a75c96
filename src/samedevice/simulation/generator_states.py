"""States of a CUDA or XPU generator: 16 bytes, seed and offset, which here stand for a state of the CPU's generator.

What was handed out is remembered, so that it restores the very sequence. The offset is a fingerprint: a state that
another process saved is recognised where the CPU's generator is in that state too, as after a script has restored both;
any other is read as its seed. Knows no generator.

Source: aten/src/ATen/cuda/CUDAGeneratorImpl.cpp and xpu/XPUGeneratorImpl.cpp, `get_state` and `set_state`, 2.6 to 2.14.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections import OrderedDict

import torch

__all__ = ["KINDS", "States"]

KINDS = ("cuda", "xpu")
_SIZE = struct.calcsize("<QQ")
_SEED = struct.calcsize("<Q")
_MASK = (1 << 64) - 1
# Looked up once, before any interception.
_Generator = torch._C.Generator
_REMEMBERED = 4096
"""How many states are kept, those that were used last: 20 MB."""


class States:
    """The states that were handed out."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, torch.Tensor] = OrderedDict()

    def shown(self, state: torch.Tensor, seed: int) -> torch.Tensor:
        """What a device says in the place of the CPU's `state`.

        Args:
            state: as the CPU's generator gives it.
            seed: that the generator began with.

        Returns:
            16 bytes, of which `hidden` makes `state` again.
        """
        token = self.token(state, seed)
        self._known[token] = state
        self._known.move_to_end(token)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return torch.tensor(list(token), dtype=torch.uint8, device="cpu")

    def hidden(self, shown: torch.Tensor) -> torch.Tensor | None:
        """The state for which `shown` was handed out; None: another process did, or long ago.

        Raises:
            RuntimeError: it is no state of such a device, in PyTorch's words.
        """
        if shown.numel() not in (_SIZE, _SEED):
            raise RuntimeError("RNG state is wrong size")
        token = bytes(shown.tolist())
        if token in self._known:
            self._known.move_to_end(token)
        return self._known.get(token)

    @staticmethod
    def token(state: torch.Tensor, seed: int) -> bytes:
        """The bytes for a state: offset 0 where nothing was drawn since the seed, else a multiple of 4."""
        read = ctypes.string_at(state.data_ptr(), state.numel())
        if read == ctypes.string_at((first := _Generator().manual_seed(seed).get_state()).data_ptr(), first.numel()):
            return struct.pack("<QQ", seed & _MASK, 0)
        fingerprint = int.from_bytes(hashlib.blake2b(read, digest_size=_SEED).digest(), "little")
        return struct.pack("<QQ", seed & _MASK, fingerprint & ~3)

    @staticmethod
    def seed(shown: torch.Tensor) -> int:
        """The seed in a state."""
        return int(struct.unpack("<q", bytes(shown.tolist()[:_SEED]))[0])
