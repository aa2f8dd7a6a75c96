"""Mends of what a module does not see: a buffer instead of an attribute, a ModuleList instead of a list."""

from __future__ import annotations

import ast

from samedevice.explaining.diagnosing.evidence import Evidence, Verdict
from samedevice.explaining.live import is_module, name_of_class, names_of_class
from samedevice.explaining.made import Made
from samedevice.explaining.making import factory_call, fixed_device
from samedevice.explaining.mending.at_use import at_use
from samedevice.explaining.mending.distributions import parameters_as_buffers
from samedevice.explaining.mending.edits import (
    as_fix,
    enclosed,
    indent_of,
    lines_of,
    replace_lines,
    replace_node,
    with_keyword,
)
from samedevice.explaining.mending.ordering import block_of
from samedevice.explaining.mending.siblings import device_beside
from samedevice.explaining.routes import Step
from samedevice.explaining.set_in_class import only_assignment
from samedevice.explaining.sources import Source
from samedevice.explaining.syntax import call_name, keyword, move_calls, moved_device
from samedevice.findings import Edit, Fix


def buffer(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`self.pe = …` becomes a buffer, unless the attribute is also set elsewhere or its owner is no module."""
    distribution = parameters_as_buffers(evidence)
    if distribution is not None:
        return distribution
    home = evidence.home()
    statement = made.statement if made is not None else None
    if home is not None and not is_module(home.owner):
        return _where_kept(evidence, home) or at_use(evidence, verdict, made)
    if made is None or home is None or not isinstance(statement, ast.Assign):
        return at_use(evidence, verdict, made)
    target = statement.targets[0]
    definition = made.source.class_at(made.line)
    if len(statement.targets) > 1 or not isinstance(target, ast.Attribute) or definition is None:
        return at_use(evidence, verdict, made)
    if _times_set(definition, target.attr) > 1 or target.attr != home.key or _is_taken(definition, home):
        return at_use(evidence, verdict, made)
    if call_name(statement.value) == "Parameter":
        return at_use(evidence, verdict, made)  # it is registered, and what holds it was not moved
    value = parameter_of_moved(statement.value, made.source)
    if value is not None:
        return as_fix(replace_node(made.source, statement.value, value))
    inner = made.source.exact_text(statement.value)
    owner = made.source.text_of(target.value)
    text = f'{owner}.register_buffer("{target.attr}", {inner}, persistent=False)'
    constructing = _super_init_after(made.source, statement)
    if constructing is not None:
        return _behind_super_init(made.source, statement, constructing, text) or at_use(evidence, verdict, made)
    return as_fix(replace_node(made.source, statement, text))


def _where_kept(evidence: Evidence, home: Step) -> Fix | None:
    """An object that knows its device keeps its tensors there: `self.grid = torch.linspace(0, 1, n, device=device)`."""
    made = only_assignment(home) if home.kind == "attribute" else None
    statement = made.statement if made is not None else None
    if made is None or not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return None
    value = statement.value
    device = device_beside(home, made, evidence.expected)
    if device is None or fixed_device(statement) is not None or not isinstance(statement.targets[0], ast.Attribute):
        return None
    inner = value.args[0] if isinstance(value, ast.Call) and call_name(value) == "Parameter" and value.args else value
    if isinstance(inner, ast.Call) and factory_call(inner, made.source) is inner:
        return as_fix(with_keyword(made.source, "device", device, inner))
    return as_fix(replace_node(made.source, inner, f"{enclosed(made.source, inner)}.to({device})"))


def _is_taken(definition: ast.ClassDef, home: Step) -> bool:
    """Whether `register_buffer` would refuse the name: a class attribute, property, parameter or submodule has it.

    Source: torch/nn/modules/module.py, `register_buffer`, 2.6 to 2.13.
    """
    if home.key in names_of_class(type(home.owner)):
        return True
    declared = [
        node for node in ast.walk(definition) if isinstance(node, ast.Call) and node.args
        and call_name(node) in ("register_parameter", "register_buffer", "add_module", "register_module")
    ]  # fmt: skip
    return any(isinstance(node.args[0], ast.Constant) and node.args[0].value == home.key for node in declared)


def _super_init_after(source: Source, statement: ast.stmt) -> ast.Expr | None:
    """The later statement of the same function that runs `Module.__init__`: before it no buffer can be registered."""
    function = source.function_at(statement.lineno)
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Expr) and node.lineno > statement.lineno and call_name(node.value) == "__init__":
            return node
    return None


def _behind_super_init(source: Source, statement: ast.Assign, constructing: ast.Expr, text: str) -> Fix | None:
    """The buffer is registered behind `super().__init__()`, where nothing needs it before."""
    block = block_of(source, statement)
    if block is None or constructing not in block or statement.end_lineno is None or constructing.end_lineno is None:
        return None
    name = getattr(statement.targets[0], "attr", "")
    between = block[block.index(statement) + 1 : block.index(constructing) + 1]
    if any(isinstance(node, ast.Attribute) and node.attr == name for each in between for node in ast.walk(each)):
        return None
    indent, first, last = indent_of(source, statement) or "", statement.lineno, constructing.end_lineno
    rest = lines_of(source, statement.end_lineno + 1, last)
    return as_fix(replace_lines(source, first, last, [*rest, *f"{indent}{text}".split("\n")]))


def _times_set(definition: ast.ClassDef, name: str) -> int:
    stores = [
        node for node in ast.walk(definition)
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store)
    ]  # fmt: skip
    return len(stores)


def parameter_of_moved(value: ast.expr, source: Source) -> str | None:
    """`nn.Parameter(x).to(d)` is no parameter any more; `nn.Parameter(x.to(d))` is one."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    inner = value.func.value
    if call_name(inner) != "Parameter" or not isinstance(inner, ast.Call) or not inner.args:
        return None
    rest = source.text_of(value)[len(source.text_of(inner)) :]
    arguments = [source.text_of(argument) for argument in inner.args[1:]]
    words = [f"{word.arg}={source.text_of(word.value)}" for word in inner.keywords]
    first = f"{enclosed(source, inner.args[0])}{rest}"
    return f"{source.text_of(inner.func)}({', '.join([first, *arguments, *words])})"


def leaf(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """A leaf on its device: `nn.Parameter(x.to(d))`, `torch.zeros(…, requires_grad=True, device=d)`."""
    return leaf_at(made)


def leaf_at(made: Made | None) -> Fix | None:
    """The same for the statement of `made`, where it moves what it has just made a leaf."""
    statement = made.statement if made is not None else None
    value = statement.value if isinstance(statement, ast.Assign) else None
    if made is None or value is None:
        return None
    text = parameter_of_moved(value, made.source) or _factory_of_moved(value, made.source)
    return as_fix(replace_node(made.source, value, text)) if text is not None else None


def _factory_of_moved(value: ast.expr, source: Source) -> str | None:
    """`torch.zeros(3, requires_grad=True).to(d)` says where in the factory instead."""
    moves = [call for call in move_calls(value) if call is value]
    inner = moves[0].func.value if moves and isinstance(moves[0].func, ast.Attribute) else None
    if not isinstance(inner, ast.Call) or keyword(inner, "requires_grad") is None:
        return None
    if keyword(inner, "device") is not None:
        return None
    device = moved_device(moves[0])
    where = source.text_of(device) if device is not None else f'"{call_name(moves[0])}"'
    return f"{source.text_of(inner)[:-1].rstrip(', ')}, device={where})"


def module_list(evidence: Evidence, verdict: Verdict, made: Made | None) -> Fix | None:
    """`self.heads = []` becomes `nn.ModuleList()`, where modules are what it holds."""
    home = evidence.home()
    steps = evidence.steps()
    step = next((step for step in steps if step.kind == "attribute" and is_module(step.owner)), home)
    holds_modules = is_module(evidence.value) or any(is_module(inner.owner) for inner in steps[1:])
    if step is None or not holds_modules:
        return None
    for frame in reversed(evidence.frames):
        source = frame.source
        definition = source.class_named(name_of_class(type(step.owner), qualified=True))
        for node in ast.walk(definition) if definition is not None else ():
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Attribute) and target.attr == step.key for target in node.targets
            ):
                return as_fix(_wrapped(source, node.value), safe=False)
    return None


def _wrapped(source: Source, value: ast.expr) -> Edit | None:
    text = source.exact_text(value)
    prefix = _nn(source)
    if isinstance(value, ast.List | ast.ListComp):
        return replace_node(source, value, f"{prefix}.ModuleList({'' if text == '[]' else text})")
    if isinstance(value, ast.Dict | ast.DictComp):
        return replace_node(source, value, f"{prefix}.ModuleDict({'' if text == '{}' else text})")
    if call_name(value) == "list" and isinstance(value, ast.Call) and len(value.args) == 1:
        return replace_node(source, value, f"{prefix}.ModuleList({source.exact_text(value.args[0])})")
    return replace_node(source, value, f"{prefix}.ModuleList({text})") if isinstance(value, ast.Name) else None


def _nn(source: Source) -> str:
    """How the file calls `torch.nn`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module == "torch" and any(a.name == "nn" for a in node.names):
            return next(alias.asname or "nn" for alias in node.names if alias.name == "nn")
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch.nn" and alias.asname:
                    return alias.asname
    return "torch.nn"
