"""SD103: a tensor is kept as a plain attribute, which no `.to()` moves."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, leaves, mending, wording
from samedevice.linting.devices.facts import Conflict, LostLeaf
from samedevice.linting.devices.values import Held, Tensor
from samedevice.linting.evidence import held_of, is_certain, kept, on_accelerator, where_held
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say

_Fact = Conflict | LostLeaf


def _claims(fact: _Fact) -> bool:
    if isinstance(fact, LostLeaf):
        return fact.use == "parameter"
    held, tensor = held_of(fact), fact.culprit.value
    if held is None or held.kind != "attribute" or not isinstance(tensor, Tensor) or tensor.kind != "plain":
        return False
    on_purpose = on_accelerator(fact) and not (tensor.origin is not None and tensor.origin.literal)
    # What another object keeps may well be right where it is: then whoever uses it has to move it.
    own = held.in_module or (is_certain(fact) and held.owner == fact.where.cls)
    return own and not on_purpose


def _at(fact: _Fact) -> ast.AST:
    return fact.node if isinstance(fact, LostLeaf) else where_held(fact)


def _message(fact: _Fact, source: Source) -> str:
    if isinstance(fact, LostLeaf):
        name = wording.text_of(fact.node, source)
        return say(
            "`{name}` is the moved copy of a parameter and no parameter itself: the module neither moves nor trains it",
            name=name,
        )
    assert isinstance(fact, Conflict)
    held = kept(fact)
    line = wording.line(wording.line_of(fact.node))
    here, there = wording.here(fact), wording.there(fact)
    if held.in_module:
        return say(
            "`self.{name}` is no buffer, so {owner}.to() leaves it on {here}; {line} uses it with a tensor on {there}",
            name=held.name,
            owner=held.owner,
            line=line,
            here=here,
            there=there,
        )
    return say(
        "`self.{name}` is kept by {owner}, which is no module, on {here}; {line} uses it with a tensor on {there}",
        name=held.name,
        owner=held.owner,
        line=line,
        here=here,
        there=there,
    )


def _fix(fact: _Fact, source: Source) -> Fix | None:
    if isinstance(fact, LostLeaf):
        return leaves.made_in_place(fact, source)
    assert isinstance(fact, Conflict)
    held, tensor = kept(fact), fact.culprit.value
    if isinstance(tensor, Tensor) and not tensor.certain:
        # A distribution, for one: neither `register_buffer` nor `.to()` takes it.
        return None
    statement = _assignment(source, held)
    if not held.in_module or statement is None:
        return mending.move_at_use(fact, source)
    value = source.segment(statement.value)
    # Out of the state dict as before, so that checkpoints go on loading.
    text = f'{source.segment(_owner(statement))}.register_buffer("{held.name}", {value}, persistent=False)'
    return Fix(text, (edits.replace(source, statement, text),))


def _owner(statement: ast.Assign) -> ast.expr:
    target = statement.targets[0]
    assert isinstance(target, ast.Attribute)
    return target.value


def _assignment(source: Source, held: Held) -> ast.Assign | None:
    """The statement `self.name = value` that may become `register_buffer`.

    It is the only one that sets the attribute and stands in `__init__`. `register_buffer` would refuse it ahead of
    `super().__init__()`, and a name that the class has, too.
    """
    if not held.function.endswith(".__init__"):
        return None
    stores = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr == held.name and isinstance(node.ctx, ast.Store)
    ]
    if stores != [held.node]:
        return None
    for owner in (node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)):
        for node in ast.walk(owner):
            if isinstance(node, ast.Assign) and node.targets == [held.node]:
                return node if _registers(owner, node, held.name) else None
    return None


def _registers(owner: ast.ClassDef, statement: ast.Assign, name: str) -> bool:
    constructed = [
        node.lineno
        for node in ast.walk(owner)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__init__"
    ]
    of_class = {
        target.id
        for node in owner.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    return name not in of_class and all(line < statement.lineno for line in constructed)


RULE: Rule[_Fact] = Rule("SD103", "plain-attribute", (Conflict, LostLeaf), _claims, _message, at=_at, fix=_fix)
