"""Find what is to be run, compile it and run it in a `__main__` of its own. Knows nothing of devices."""

from __future__ import annotations

import importlib.util
import io
import os
import pkgutil
import sys
import zipfile
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from samedevice.errors import UsageError
from samedevice.running.interpreter import become_main
from samedevice.texts import say

__all__ = ["NothingToRun", "execute", "first_folder"]


class NothingToRun(UsageError):
    """There is no readable program at the target: exit status 2, as `python` answers a missing file."""


def first_folder(target: str, *, module: bool) -> str:
    """What `python` puts first in `sys.path`.

    Args:
        target: a script, a folder or zip file, or a module's name.
        module: whether it is a module's name.

    Returns:
        The script's own folder, its link followed; the folder or zip file; the current folder for a module.
    """
    if module:
        return str(Path.cwd())
    real = os.path.realpath(target)
    return real if _holds_main(real) else str(Path(real).parent)


def execute(target: str, *, module: bool) -> None:
    """Compile the target and run it as `__main__`; whatever it raises comes through.

    Args:
        target: a script, a folder or zip file with a `__main__.py`, or a module's name.
        module: whether it is a module's name.

    Raises:
        NothingToRun: there is no such program, or it cannot be read.
    """
    spec: ModuleSpec | None = None
    if module:
        spec = _module_spec(target)
        sys.argv[0] = str(spec.origin)
    elif _holds_main(target):
        spec = PathFinder.find_spec("__main__", [os.path.realpath(target)])
        if spec is None:
            raise NothingToRun(say("cannot run {target}: it holds no __main__.py", target=target))
    code = _script_code(target) if spec is None else _code_of(spec)
    exec(code, _new_main(code, spec).__dict__)


def _holds_main(path: str) -> bool:
    return Path(path).is_dir() or (Path(path).is_file() and zipfile.is_zipfile(path))


def _module_spec(name: str) -> ModuleSpec:
    if name.startswith(".") or name == "__main__":
        raise NothingToRun(say("cannot run {name}: a module is named from the top, as in package.module", name=name))
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # the package is there; it is an import of its own that failed
        spec = None
    if spec is None:
        raise NothingToRun(say("no module {name!r} can be run from {folder}", name=name, folder=str(Path.cwd())))
    return spec


def _code_of(spec: ModuleSpec) -> CodeType:
    get_code = getattr(spec.loader, "get_code", None)
    code = get_code(spec.name) if get_code else None
    if not isinstance(code, CodeType):
        raise NothingToRun(say("cannot run {name}: it has no Python code", name=spec.name))
    return code


def _script_code(path: str) -> CodeType:
    # Absolute, as python has it since 3.9, so that a script that changes its folder still has a readable traceback.
    absolute = str(Path(path).absolute())
    if path.endswith(".ipynb"):
        raise NothingToRun(
            say(
                "cannot run {file}: a notebook is no script. Mend: `jupyter nbconvert --to script` makes one of it; "
                "in the notebook itself, `samedevice.install()` explains what fails",
                file=path,
            )
        )
    try:
        with io.open_code(absolute) as file:
            compiled: CodeType | None = pkgutil.read_code(file)  # a .pyc file
        source = b"" if compiled else SourceFileLoader("__main__", absolute).get_data(absolute)
    except OSError as error:
        raise NothingToRun(
            say("cannot open {file}: {reason}", file=path, reason=error.strerror or str(error))
        ) from None
    return compiled or compile(source, absolute, "exec", dont_inherit=True)


def _new_main(code: CodeType, spec: ModuleSpec | None) -> ModuleType:
    """A `__main__` in which pickle, multiprocessing and `inspect` find their way."""
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=spec.origin if spec else code.co_filename,
        __cached__=None,
        __loader__=spec.loader if spec else SourceFileLoader("__main__", code.co_filename),
        __package__=spec.parent if spec else None,
        __spec__=spec,
        __builtins__=sys.modules["builtins"],
    )
    become_main(main)
    return main
