"""`samedevice inspect`: devices, shapes and sizes in a checkpoint. Its pickles are never run, its data never read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import samedevice
from samedevice.checkpoints import Checkpoint, Entry, inspect
from samedevice.cli.arguments import Parser
from samedevice.reports.wording import count, printable

__all__ = ["main"]

MOST_ENTRIES = 40
MOST_CLASSES = 8
_EXAMPLES = """\
  samedevice inspect model.pt
  samedevice inspect --all model.pt            every tensor
  samedevice inspect --format json model.pt

exit status: 0 read, 2 unreadable, or unsafe: its pickle would run code (it is named and not run)."""


def main(argv: list[str]) -> int:
    """Print what a checkpoint holds; see `samedevice inspect --help`."""
    parser = Parser(
        "inspect", "Show devices, shapes and sizes in a checkpoint, without running its pickles.", _EXAMPLES
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a file of torch.save, torch.jit.save or safetensors")
    parser.add_argument("--all", action="store_true", help=f"list every tensor, not the first {MOST_ENTRIES}")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args(argv)
    checkpoint = inspect(options.checkpoint)
    if options.format == "json":
        print(_json(checkpoint))
    else:
        lines = _text(checkpoint, len(checkpoint.entries) if options.all else MOST_ENTRIES)
        print("\n".join(map(printable, lines)))
    return 0


def _json(checkpoint: Checkpoint) -> str:
    tool = {"name": "samedevice", "version": samedevice.__version__}
    data = {"schema": 1, "tool": tool, **asdict(checkpoint), "devices": checkpoint.devices}
    return json.dumps(data, indent=1)


def _text(checkpoint: Checkpoint, most: int) -> Iterator[str]:
    listed = checkpoint.entries
    yield f"{checkpoint.file}: {checkpoint.format}, {count(len(listed), 'tensor')}, {_size(checkpoint.bytes)}"
    for device in dict.fromkeys(entry.device for entry in listed):
        here = [entry for entry in listed if entry.device == device]
        yield f"  {device or 'any device'}: {count(len(here), 'tensor')}, {_size(sum(entry.bytes for entry in here))}"
    if listed:
        yield ""
    width = max((len(entry.path) for entry in listed[:most]), default=0)
    yield from (_line(entry, min(width, 60)) for entry in listed[:most])
    if len(listed) > most:
        yield f"… and {len(listed) - most} more; --all lists them"
    yield from _advice(checkpoint)


def _line(entry: Entry, width: int) -> str:
    shape = "" if entry.shape is None else f"[{', '.join(map(str, entry.shape))}]"
    text = f"{entry.path:<{width}}  {entry.device or '-':<7} {_size(entry.bytes):>8}  {entry.dtype}{shape}"
    if entry.storage_bytes > 2 * entry.bytes + 1024 and entry.kind != "storage":
        text += f"  (a part of {_size(entry.storage_bytes)}: save a .clone() to keep the file small)"
    return text


def _advice(checkpoint: Checkpoint) -> Iterator[str]:
    elsewhere = [device for device in checkpoint.devices if device not in ("cpu", "meta")]
    if elsewhere:
        yield ""
        yield f"torch.load puts tensors back on {', '.join(elsewhere)} and fails where that is missing."
        yield 'Mend: torch.load(path, map_location="cpu"), then move what is needed (cause SD113)'
    if checkpoint.classes and checkpoint.format != "torchscript":
        yield ""
        yield "Besides tensors it holds objects of:"
        yield from (f"  {name}" for name in checkpoint.classes[:MOST_CLASSES])
        if len(checkpoint.classes) > MOST_CLASSES:
            yield f"  … and {len(checkpoint.classes) - MOST_CLASSES} more"
        yield "For these torch.load wants weights_only=False or torch.serialization.add_safe_globals: trust the source."


def _size(bytes_: int) -> str:
    """E.g. "812 B", "3.1 MB": powers of 1000, as disks and `ls -h --si` have them."""
    if bytes_ < 1000:
        return f"{bytes_} B"
    power = min((len(str(bytes_)) - 1) // 3, 4)
    return f"{bytes_ / 1000**power:.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"
