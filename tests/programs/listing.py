"""Writes the lists of docs/programs.md: the families of the tables and the scripts. Run it after adding one."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "programs.md"
TABLES = ("transformers_models", "timm_models", "torchvision_models", "graph_models", "other_models")
_BEGIN = "## Model families\n"


def lines() -> Iterator[str]:
    """The lines of the page from its first list on."""
    yield _BEGIN
    yield "| package | families |"
    yield "| --- | --- |"
    packages: dict[str, list[str]] = {}
    for table in TABLES:
        for row in load(table).FAMILIES:
            packages.setdefault(row["package"], []).append(row["name"].removeprefix(row["package"]).strip())
    for package, names in packages.items():
        yield f"| {package} | {', '.join(names)} |"
    yield "\n## Programs\n"
    yield "| script | what it does |"
    yield "| --- | --- |"
    for script in sorted((HERE / "scripts").glob("*.py")):
        yield f"| `{script.name}` | {ast.get_docstring(ast.parse(script.read_text()))} |"


def page() -> str:
    """The whole page as it should be."""
    return PAGE.read_text().partition(_BEGIN)[0] + "\n".join(lines()) + "\n"


def load(name: str) -> Any:
    """The module of that name beside this one."""
    spec = importlib.util.spec_from_file_location(f"programs_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    PAGE.write_text(page())
