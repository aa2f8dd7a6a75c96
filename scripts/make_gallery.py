"""Write docs/gallery.md: what samedevice prints for ten device bugs, as it prints it.

    python scripts/make_gallery.py

The bugs are cases of tests/casebook/; each is run on simulated devices. A test fails where the page in the repository
is not what this gives.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import warnings
from pathlib import Path

from samedevice import reports
from samedevice.findings import Report
from samedevice.running import RunOptions, run

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "gallery.md"
CASES = ROOT / "tests" / "casebook" / "cases"

_HEAD = """\
# Ten bugs, explained

Each of these is a bug that somebody reported, written anew in a few lines (the cases of `tests/casebook/`) and run on
simulated devices: `samedevice run --simulate cuda train.py`. Python's own traceback comes first, as ever; this is what
samedevice prints after it. `scripts/make_gallery.py` makes this page from real runs.
"""
_SHOWN = {
    "mel-bank-kept-as-attribute": "A tensor that no `.to()` moves",
    "validation-loop-forgets-labels": "One of several inputs left on the CPU",
    "graph-object-inside-batch-dict": "A batch that was moved in part",
    "feature-embeddings-in-dict": "Layers in a plain dict",
    "optimizer-offloaded-for-evaluation": "Optimizer state that was left behind",
    "embedding-resized-after-optimizer": "Nothing is raised, and nothing is trained",
    "lengths-moved-with-whole-batch": "What has to stay on the CPU",
    "prototypes-restored-on-the-gpu-that-saved-them": "A checkpoint that goes back where it came from",
    "unet-skip-stays-on-first-gpu": "A model on two devices",
    "layer-outputs-summed-with-numpy": "NumPy and the accelerator's memory",
}
_IN_CHINESE = ("mel-bank-kept-as-attribute", "embedding-resized-after-optimizer")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    reported = {case: _report(CASES / case) for case in _SHOWN}
    for case, title in _SHOWN.items():
        parts.append(f"## {title}\n\n{_block(_text(reported[case], 'en'))}")
    parts.append("## 中文\n\n`SAMEDEVICE_LANG=zh_CN`, or the locale, brings the same in [Chinese](languages.md).\n")
    parts += [_block(_text(reported[case], "zh_CN")) for case in _IN_CHINESE]
    return "\n".join(parts)


def _report(case: Path) -> Report:
    devices = re.search(r"(?m)^devices = (\d+)", (case / "case.toml").read_text(encoding="utf-8"))
    before = Path.cwd()
    os.chdir(case)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            return run(RunOptions("buggy.py", simulate=f"cuda:{devices[1] if devices else 1}")).report
    finally:
        os.chdir(before)


def _text(report: Report, language: str) -> str:
    before = os.environ.get("SAMEDEVICE_LANG")
    os.environ["SAMEDEVICE_LANG"] = language
    try:
        return reports.to_text(report).replace("buggy.py", "train.py")
    finally:
        os.environ.pop("SAMEDEVICE_LANG")
        if before is not None:
            os.environ["SAMEDEVICE_LANG"] = before


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


if __name__ == "__main__":
    main()
