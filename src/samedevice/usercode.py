"""Whose code is this? "The user's own" is any file outside the standard library and installed packages."""

from __future__ import annotations

import functools
import linecache
import os
import site
import sys
import sysconfig
from pathlib import Path
from types import FrameType, TracebackType

__all__ = ["is_user_file", "user_frame", "users_traceback"]

_OWN_FILES = str(Path(__file__).parent) + os.sep
_GENERATED = ("<frozen", "<eval_with_key", "<attrs generated", "<string>", "<unknown>", "<__array_function__")


@functools.cache
def _library_roots() -> tuple[str, ...]:
    paths: set[str | None] = {sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths.update(site.getsitepackages() if hasattr(site, "getsitepackages") else [])
    user_site = site.getusersitepackages() if hasattr(site, "getusersitepackages") else None
    paths.add(user_site)
    # A virtual environment's `sysconfig` names its own folders; the standard library lies in the base.
    paths.add(str(Path(linecache.__file__).parent))
    paths.add(str(Path(__file__).parent))
    resolved = {str(Path(path).resolve()) for path in paths if path}
    return tuple(sorted(root + separator for root in resolved | {p for p in paths if p} for separator in ("/", "\\")))


@functools.lru_cache(maxsize=4096)
def _is_user_path(filename: str) -> bool:
    normal = filename.replace("\\", "/")
    if "/site-packages/" in normal or "/dist-packages/" in normal:
        return False
    return not (filename.startswith(_library_roots()) or _is_written_by_library(filename))


def _is_written_by_library(filename: str) -> bool:
    """Whether the file is a module of an installed package that lies elsewhere: code it wrote into a temporary folder.

    torch_geometric writes its message passing, inductor its kernels, each as a module below the package's own name.
    """
    for name, module in list(sys.modules.items()):
        package, _, inner = name.partition(".")
        if inner and getattr(module, "__file__", None) == filename:
            written_by = getattr(sys.modules.get(package), "__file__", None)
            return written_by is not None and written_by != filename and not _is_user_path(written_by)
    return False


def is_user_file(filename: str) -> bool:
    """Whether `filename`, as a code object has it, is the user's own code.

    Interactive and notebook sources count as the user's; code that libraries generate ("<string>", torch.fx) does not.
    """
    if filename.startswith("<"):
        if filename.startswith(_GENERATED):
            return False
        return filename == "<stdin>" or filename.startswith("<ipython-input") or filename in linecache.cache
    return _is_user_path(filename)


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame of the user's own code, looking outwards from `depth` callers up, or None."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def users_traceback(tb: TracebackType | None) -> TracebackType | None:
    """The same traceback as if neither a runner nor a simulation stood between the user and PyTorch.

    Args:
        tb: of an exception, or None.

    Returns:
        It without the frames of this package; None where no others are left.
    """
    steps = []
    while tb is not None:
        if not tb.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
            steps.append(tb)
        tb = tb.tb_next
    rebuilt: TracebackType | None = None
    for step in reversed(steps):
        rebuilt = TracebackType(rebuilt, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return rebuilt
