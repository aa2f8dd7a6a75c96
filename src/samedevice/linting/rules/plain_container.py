"""SD104: modules or parameters in a plain list or dict, which `.to()` does not look into."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, mending, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.devices.values import Held, Module, Tensor
from samedevice.linting.evidence import held_of, kept, where_held
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    held = held_of(fact)
    return held is not None and held.kind == "container" and held.in_module


def _message(fact: Conflict, source: Source) -> str:
    held = kept(fact)
    return say(
        "the {kind} in `self.{name}` are in a plain container, so {owner}.to() leaves them on {here}; {line} uses them "
        "with a tensor on {there}",
        kind=say("modules") if isinstance(fact.culprit.value, Module) else say("tensors"),
        name=held.name,
        owner=held.owner,
        line=wording.line(wording.line_of(fact.node)),
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    held = kept(fact)
    value = _assigned(source, held)
    torch_nn = _name_of_nn(source)
    if not _can_register(fact):
        return mending.move_at_use(fact, source) if isinstance(fact.culprit.value, Tensor) else None
    if value is None or torch_nn is None:
        return None
    kind = "Module" if isinstance(fact.culprit.value, Module) else "Parameter"
    mapping = isinstance(value, ast.Dict | ast.DictComp)
    empty = isinstance(value, ast.List | ast.Dict) and not source.segment(value)[1:-1].strip()
    container = f"{torch_nn}.{kind}{'Dict' if mapping else 'List'}"
    text = f"{container}()" if empty else f"{container}({source.segment(value)})"
    return Fix(f"self.{held.name} = {container}(…)", (edits.replace(source, value, text),))


def _can_register(conflict: Conflict) -> bool:
    value = conflict.culprit.value
    return isinstance(value, Module) or (isinstance(value, Tensor) and value.kind == "parameter")


def _assigned(source: Source, held: Held) -> ast.expr | None:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and node.targets == [held.node]:
            plain = ast.List | ast.ListComp | ast.Dict | ast.DictComp | ast.Call
            return node.value if isinstance(node.value, plain) and _is_plain(node.value) else None
    return None


def _is_plain(value: ast.expr) -> bool:
    return not isinstance(value, ast.Call) or (
        isinstance(value.func, ast.Name) and value.func.id in ("list", "tuple", "dict")
    )


def _name_of_nn(source: Source) -> str | None:
    """How the file calls torch.nn."""
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "torch":
            for alias in node.names:
                if alias.name == "nn":
                    return alias.asname or "nn"
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch.nn" and alias.asname:
                    return alias.asname
    imports_torch = any(
        isinstance(node, ast.Import) and any(alias.name == "torch" and not alias.asname for alias in node.names)
        for node in source.tree.body
    )
    return "torch.nn" if imports_torch else None


RULE = Rule("SD104", "plain-container", Conflict, _claims, _message, at=where_held, fix=_fix)
