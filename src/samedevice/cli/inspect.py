"""`samedevice inspect`: devices, shapes and sizes in a checkpoint. Its pickles are never run, its data never read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import samedevice
from samedevice.checkpoints import Checkpoint, Entry, inspect
from samedevice.cli.arguments import Parser
from samedevice.reports.columns import pad
from samedevice.reports.wording import printable
from samedevice.texts import Text, say, say_number, shown

__all__ = ["main"]

MOST_ENTRIES = 40
MOST_CLASSES = 8
_EXAMPLES = say(
    """\
  samedevice inspect model.pt
  samedevice inspect --all model.pt            every tensor
  samedevice inspect --format json model.pt

exit status: 0 read, 2 unreadable, or unsafe: its pickle would run code (it is named and not run)."""
)


def main(argv: list[str]) -> int:
    """Print what a checkpoint holds; see `samedevice inspect --help`."""
    parser = Parser(
        "inspect", say("Show devices, shapes and sizes in a checkpoint, without running its pickles."), _EXAMPLES
    )
    kinds = say("a file of torch.save, torch.jit.save or safetensors")
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help=shown(kinds))
    every = say("list every tensor, not the first {number}", number=MOST_ENTRIES)
    parser.add_argument("--all", action="store_true", help=shown(every))
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args(argv)
    checkpoint = inspect(options.checkpoint)
    if options.format == "json":
        print(_json(checkpoint))
    else:
        lines = _text(checkpoint, len(checkpoint.entries) if options.all else MOST_ENTRIES)
        print("\n".join(printable(shown(line)) for line in lines))
    return 0


def _json(checkpoint: Checkpoint) -> str:
    tool = {"name": "samedevice", "version": samedevice.__version__}
    data = {"schema": 1, "tool": tool, **asdict(checkpoint), "devices": checkpoint.devices}
    return json.dumps(data, indent=1)


def _text(checkpoint: Checkpoint, most: int) -> Iterator[str]:
    listed = checkpoint.entries
    yield say(
        "{file}: {format}, {tensors}, {size}",
        file=checkpoint.file,
        format=checkpoint.format,
        tensors=_tensors(len(listed)),
        size=_size(checkpoint.bytes),
    )
    for device in dict.fromkeys(entry.device for entry in listed):
        here = [entry for entry in listed if entry.device == device]
        yield say(
            "  {device}: {tensors}, {size}",
            device=device or say("any device"),
            tensors=_tensors(len(here)),
            size=_size(sum(entry.bytes for entry in here)),
        )
    if listed:
        yield ""
    width = max((len(entry.path) for entry in listed[:most]), default=0)
    yield from (_line(entry, min(width, 60)) for entry in listed[:most])
    if len(listed) > most:
        yield say("… and {number} more; --all lists them", number=len(listed) - most)
    yield from _advice(checkpoint)


def _tensors(number: int) -> Text:
    return say_number("{number} tensor", "{number} tensors", number)


def _line(entry: Entry, width: int) -> str:
    shape = "" if entry.shape is None else f"[{', '.join(map(str, entry.shape))}]"
    text = f"{pad(entry.path, width)}  {entry.device or '-':<7} {_size(entry.bytes):>8}  {entry.dtype}{shape}"
    if entry.storage_bytes > 2 * entry.bytes + 1024 and entry.kind != "storage":
        whole = _size(entry.storage_bytes)
        return say("{tensor}  (a part of {size}: save a .clone() to keep the file small)", tensor=text, size=whole)
    return text


def _advice(checkpoint: Checkpoint) -> Iterator[str]:
    elsewhere = [device for device in checkpoint.devices if device not in ("cpu", "meta")]
    if elsewhere:
        yield ""
        devices = ", ".join(elsewhere)
        load = "torch.jit.load" if checkpoint.format == "torchscript" else "torch.load"
        yield say("{load} puts tensors back on {devices} and fails where that is missing.", load=load, devices=devices)
        yield say('Mend: {load}(path, map_location="cpu"), then move what is needed (cause SD113)', load=load)
    if checkpoint.classes and checkpoint.format != "torchscript":
        yield ""
        yield say("Besides tensors it holds objects of:")
        yield from (f"  {name}" for name in checkpoint.classes[:MOST_CLASSES])
        if len(checkpoint.classes) > MOST_CLASSES:
            yield say("  … and {number} more", number=len(checkpoint.classes) - MOST_CLASSES)
        yield say(
            "For these torch.load wants weights_only=False or torch.serialization.add_safe_globals: trust the source."
        )


def _size(bytes_: int) -> str:
    """E.g. "812 B", "3.1 MB": powers of 1000, as disks and `ls -h --si` have them."""
    if bytes_ < 1000:
        return f"{bytes_} B"
    power = min((len(str(bytes_)) - 1) // 3, 4)
    return f"{bytes_ / 1000**power:.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"
