"""The line where a class gives itself an attribute, and the edit that registers it.

Source files are read and parsed; nothing is imported and nothing of the user's runs.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from samedevice.findings import Edit, Finding, Fix
from samedevice.placing.module_tensors import ModuleTensor

__all__ = ["with_source"]


@dataclass(frozen=True, slots=True)
class _Assignment:
    """`self.<attribute> = <value>` in a class."""

    file: str
    lines: tuple[str, ...]
    """The whole lines that the statement stands on."""
    node: ast.Assign | ast.AnnAssign

    @property
    def stands_alone(self) -> bool:
        """Whether nothing else is on its lines, so that they can be replaced."""
        before = self.lines[0][: self.node.col_offset].strip()
        # `end_col_offset` counts bytes of UTF-8.
        after = self.lines[-1].encode()[self.node.end_col_offset or 0 :].decode().strip()
        return not before and not after


def with_source(finding: Finding, holders: Mapping[str, ModuleTensor]) -> Finding:
    """`finding` with the line that made its culprit, and the edit that mends it, where the culprit is an attribute.

    Args:
        finding: a finding of `judge`.
        holders: what each such attribute belongs to.

    Returns:
        The finding itself where no line is known.
    """
    culprit = finding.culprit
    held = holders.get(culprit.name) if culprit else None
    assignment = _find(type(held.holder), held.attribute) if held else None
    if culprit is None or held is None or assignment is None:
        return finding
    line = assignment.node.lineno
    culprit = replace(culprit, file=assignment.file, line=line, source=assignment.lines[0].strip())
    return replace(finding, culprit=culprit, fix=_fix(finding.fix, held, assignment))


def _find(cls: type, attribute: str) -> _Assignment | None:
    for base in cls.__mro__:
        module = sys.modules.get(base.__module__)
        file = getattr(module, "__file__", None)
        if file and not base.__module__.startswith("torch.nn."):
            for node in _assignments(file, base.__qualname__, attribute):
                lines = linecache.getlines(file)[node.lineno - 1 : node.end_lineno]
                return _Assignment(file, tuple(line.rstrip("\r\n") for line in lines), node)
    return None


def _assignments(file: str, qualname: str, attribute: str) -> Iterator[ast.Assign | ast.AnnAssign]:
    for function in _classes(file).get(qualname, ast.Pass()).__dict__.get("body", ()):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or not function.args.args:
            continue
        self_name = function.args.args[0].arg
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                targets = [node.target]
            else:
                continue
            for target in targets:
                if (
                    isinstance(target, ast.Attribute)
                    and target.attr == attribute
                    and isinstance(target.value, ast.Name)
                    and target.value.id == self_name
                ):
                    yield node


@functools.lru_cache(maxsize=64)
def _classes(file: str) -> dict[str, ast.ClassDef]:
    """The classes of a file by their qualified names; {} where it cannot be read or parsed."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, ast.ClassDef] = {}
    stack: list[tuple[str, ast.AST]] = [("", tree)]
    while stack:
        prefix, node = stack.pop()
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, ast.ClassDef):
                found[prefix + child.name] = child
                inner = f"{prefix}{child.name}."
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = f"{prefix}{child.name}.<locals>."
            stack.append((inner, child))
    return found


def _fix(fix: Fix | None, held: ModuleTensor, assignment: _Assignment) -> Fix | None:
    """The edit that registers the attribute, where its statement can be rewritten; else `fix` as it is."""
    statement = assignment.node
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if fix is None or statement.value is None or len(targets) != 1 or not assignment.stands_alone:
        return fix
    text = "".join(linecache.getlines(assignment.file))
    value = ast.get_source_segment(text, statement.value)
    new = _registered(held, ast.unparse(targets[0]), statement.value, value, _name_of_nn(text)) if value else None
    if new is None:
        return fix
    old = "\n".join(assignment.lines)
    indent = old[: len(old) - len(old.lstrip())]
    edit = Edit(assignment.file, statement.lineno, statement.end_lineno or statement.lineno, old, indent + new)
    # A registered module is listed by parameters() and saved by state_dict(): more than the device changes.
    return Fix(fix.summary if "\n" in new else new, (edit,), safe=held.kind == "plain attribute")


def _registered(held: ModuleTensor, target: str, node: ast.expr, value: str, nn_name: str | None) -> str | None:
    if held.kind == "plain attribute":
        self_name = target.rpartition(".")[0]
        return f'{self_name}.register_buffer("{held.attribute}", {value}, persistent=False)'
    by_name = isinstance(node, (ast.Dict, ast.DictComp))
    if held.kind != "container parameter" or not nn_name or not (by_name or isinstance(node, (ast.List, ast.ListComp))):
        return None
    # A ModuleList takes modules and no lists of modules: one index, then the parameter or the way into its module.
    inside = re.fullmatch(r"\[[^\]]+\](\..*)?", held.path[len(held.holder_path or "") :])
    if inside is None:
        return None
    return f"{target} = {nn_name}.{'Module' if inside[1] else 'Parameter'}{'Dict' if by_name else 'List'}({value})"


def _name_of_nn(text: str) -> str | None:
    """What a file calls `torch.nn`: "nn" after `from torch import nn`, else "torch.nn" after `import torch`."""
    longer = None
    for node in ast.parse(text).body:
        for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
            full = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
            if full == "torch.nn" and (alias.asname or isinstance(node, ast.ImportFrom)):
                return alias.asname or alias.name
            if full in ("torch", "torch.nn") and not isinstance(node, ast.ImportFrom):
                longer = f"{alias.asname or 'torch'}.nn"
    return longer
