"""Read what a checkpoint holds (devices, shapes, dtypes, sizes by key path) without running its pickles or its data.

`inspect` needs no torch. Nothing that a file names is imported or called: every class and function in a pickle becomes
an inert stand-in (`unpickling`), and a file that would call more than PyTorch's own rebuilding functions is refused.
Tensor data is never read, so a checkpoint of any size is inspected at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from samedevice.checkpoints import formats
from samedevice.checkpoints.contents import Entry, Holder, entries

__all__ = ["Checkpoint", "Entry", "inspect"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a file holds. Sizes are in bytes."""

    file: str
    format: str
    """zip, torchscript, legacy, pickle or safetensors."""
    entries: tuple[Entry, ...]
    bytes: int
    """The size of all storages, each counted once."""
    classes: tuple[str, ...] = ()
    """Classes that `torch.load` would have to import; with any of them it needs `weights_only=False`."""

    @property
    def devices(self) -> tuple[str, ...]:
        """Where `torch.load` without `map_location` puts the tensors, in the order met."""
        return tuple(dict.fromkeys(entry.device for entry in self.entries if entry.device is not None))


def inspect(file: str) -> Checkpoint:
    """Read the directory of a checkpoint.

    Args:
        file: a file written by `torch.save` (zip or legacy), `torch.jit.save`, `pickle.dump` or safetensors.

    Returns:
        Each tensor by its key path, e.g. `["model"]["0.weight"]`.

    Raises:
        UnreadableCheckpoint: the file is missing, cut short, damaged or of another kind.
        UnsafeCheckpoint: its pickle would run code; the message names what. It was not run.
    """
    kind, found = formats.read(file)
    holder = Holder()
    listed = tuple(entries(found.root, holder))
    return Checkpoint(file, kind, listed, holder.bytes, tuple(sorted(found.classes)))
