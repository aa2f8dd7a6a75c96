"""SD900: faults without a cause of their own: a leaf that a move replaced, a gradient on another device."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, leaves, mending, wording
from samedevice.linting.devices.facts import Conflict, LostLeaf, WeightUntied
from samedevice.linting.evidence import is_certain, origin_of
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say

_Fact = Conflict | LostLeaf | WeightUntied


def _claims(fact: _Fact) -> bool:
    return not isinstance(fact, Conflict) or (is_certain(fact) and (fact.role == "gradient" or _is_traced(fact)))


def _is_traced(fact: Conflict) -> bool:
    origin = origin_of(fact)
    return origin is not None and origin.how == "traced"


def _at(fact: _Fact) -> ast.AST:
    origin = origin_of(fact) if isinstance(fact, Conflict) else None
    return origin.node if origin is not None and origin.how == "traced" else fact.node


def _message(fact: _Fact, source: Source) -> str:
    if isinstance(fact, WeightUntied):
        weight = wording.text_of(fact.weight, source)
        return say(
            "this makes a second Parameter over the storage of `{name}`; moving the model takes the two apart",
            name=weight,
        )
    if isinstance(fact, LostLeaf):
        line = wording.line(wording.line_of(leaves.move_of(fact)))
        if fact.use == "parameter":
            return say(
                "a tensor that requires gradients was moved in {line}: the copy is no leaf, so it is no parameter",
                line=line,
            )
        return say(
            "a tensor that requires gradients was moved in {line}: the copy is no leaf, so no optimizer can train it",
            line=line,
        )
    here, there = wording.here(fact), wording.there(fact)
    if _is_traced(fact):
        return say(
            "`{made}` was traced on {here}, and the trace goes on making it there; {line} uses it with a tensor on "
            "{there}",
            made=wording.text_of(_at(fact), source),
            line=wording.line(wording.line_of(fact.node)),
            here=here,
            there=there,
        )
    if isinstance(fact.node, ast.Attribute):
        return say("a gradient on {there} is given to a tensor on {here}", here=here, there=there)
    return say("a backward returns a gradient on {here} for an input on {there}", here=here, there=there)


def _fix(fact: _Fact, source: Source) -> Fix | None:
    if isinstance(fact, LostLeaf):
        return leaves.made_in_place(fact, source)
    if isinstance(fact, WeightUntied):
        return _tied(fact, source)
    if _is_traced(fact):
        return None
    if isinstance(fact.node, ast.Attribute):
        return _assigned(fact.node, source)
    # What a backward returns goes where the gradient is that it got.
    return mending.moved(fact.node, f"{fact.other.argument}.device" if fact.other.argument else None, source)


def _assigned(target: ast.Attribute, source: Source) -> Fix | None:
    """`tensor.grad = value`: the value goes where the tensor is."""
    for statement in ast.walk(source.tree):
        if isinstance(statement, ast.Assign) and statement.targets == [target]:
            return mending.moved(statement.value, f"{source.segment(target.value)}.device", source)
    return None


def _tied(fact: WeightUntied, source: Source) -> Fix | None:
    """`self.embed = nn.Embedding(…, _weight=w)` becomes two statements, the second `self.embed.weight = w`."""
    for statement in ast.walk(source.tree):
        if isinstance(statement, ast.Assign) and statement.value is fact.node and isinstance(fact.node, ast.Call):
            target, call = source.segment(statement.targets[0]), fact.node
            kept = [*call.args, *(keyword for keyword in call.keywords if keyword.value is not fact.weight)]
            made = f"{source.segment(call.func)}({', '.join(source.segment(part) for part in kept)})"
            tied = f"{target}.weight = {source.segment(fact.weight)}"
            text = f"{target} = {made}\n{' ' * statement.col_offset}{tied}"
            return Fix(tied, (edits.replace(source, statement, text),)) if len(statement.targets) == 1 else None
    return None


RULE: Rule[_Fact] = Rule("SD900", "other", (Conflict, LostLeaf, WeightUntied), _claims, _message, at=_at, fix=_fix)
