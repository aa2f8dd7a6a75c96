"""The same structure around new leaves: `scan` finds what is inside, `replace` rebuilds what a new leaf touches.

What no new leaf touches keeps its identity, what was shared stays shared, cycles close again. Nothing recurses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from samedevice.trees.containers import KINDS
from samedevice.trees.kinds import ATOM, LEAF, OPAQUE, Container

__all__ = ["PartError", "Tree", "replace", "scan"]


class PartError(Exception):
    """Something went wrong with one part of a tree: `part` is that object, the reason is chained."""

    def __init__(self, part: Any) -> None:
        super().__init__(part)
        self.part = part


@dataclass(slots=True)
class Tree:
    """What is inside nested data."""

    root: Any
    nodes: list[Any]
    """The containers, each once, inner ones before outer ones as far as cycles let them."""
    leaves: list[Any]
    """What moves itself, as often as it was met."""
    cyclic: bool


def scan(obj: Any) -> Tree:
    """Find the containers and leaves of nested data, at any depth.

    Args:
        obj: nested data of any shape.

    Returns:
        Its containers and leaves. Opaque objects and atoms are not in it.

    Raises:
        PartError: a registered class could not be opened.
    """
    kinds = KINDS
    nodes: list[Any] = []
    leaves: list[Any] = []
    cyclic = False
    finished: dict[int, bool] = {}
    # A container and what is left of its children; the first is a stand-in that holds the root.
    stack: list[tuple[Any, Iterator[Any]]] = [(None, iter((obj,)))]
    while stack:
        node, children = stack[-1]
        for child in children:
            kind = kinds[type(child)]
            if kind is LEAF:
                leaves.append(child)
            elif kind is ATOM or kind is OPAQUE:
                continue
            elif (state := finished.get(id(child))) is None:
                finished[id(child)] = False
                stack.append((child, _open(kind, child)))
                break
            elif not state:
                cyclic = True
        else:
            stack.pop()
            nodes.append(node)
            finished[id(node)] = True
    nodes.pop()
    return Tree(obj, nodes, leaves, cyclic)


def _open(kind: Container, node: Any) -> Iterator[Any]:
    try:
        return iter(kind.children(node))
    except Exception as error:
        raise PartError(node) from error


def replace(tree: Tree, new: dict[int, Any]) -> Any:
    """Rebuild nested data around new leaves.

    Args:
        tree: what `scan` found.
        new: for each leaf that changes, by its id, what stands for it. Rebuilt containers are added.

    Returns:
        The new root; the very same object where nothing in it changes.

    Raises:
        PartError: a container could not be rebuilt.
    """
    (_replace_cyclic if tree.cyclic else _replace_acyclic)(tree, new)
    return new.get(id(tree.root), tree.root)


def _replace_acyclic(tree: Tree, new: dict[int, Any]) -> None:
    get, ids = new.get, new.keys()
    node = None
    try:
        for node in tree.nodes:
            kind: Any = KINDS[type(node)]
            children = list(kind.children(node))
            if not ids.isdisjoint(map(id, children)):
                new[id(node)] = kind.build(node, [get(id(child), child) for child in children])
    except Exception as error:
        raise PartError(node) from error


def _replace_cyclic(tree: Tree, new: dict[int, Any]) -> None:
    """All objects are begun before any is finished, so that each can refer to each."""
    changed = _touched(tree, new)
    node = tree.root
    try:
        for node in _in_order_of_need(changed):
            new[id(node)] = _container(node).begin(node, new.get)
        for node in changed.values():
            _container(node).finish(new[id(node)], node, new.get)
    except Exception as error:
        raise PartError(node) from error


def _touched(tree: Tree, new: dict[int, Any]) -> dict[int, Any]:
    """The containers from which a new leaf can be reached, by id, in the order of `tree.nodes`."""
    parents: dict[int, list[Any]] = {}
    reached: list[int] = []
    for node in tree.nodes:
        for child in _container(node).children(node):
            if id(child) in new:
                reached.append(id(node))
            else:
                parents.setdefault(id(child), []).append(node)
    found = set(reached)
    while reached:
        for parent in parents.get(reached.pop(), ()):
            if id(parent) not in found:
                found.add(id(parent))
                reached.append(id(parent))
    return {id(node): node for node in tree.nodes if id(node) in found}


def _in_order_of_need(nodes: dict[int, Any]) -> Iterator[Any]:
    """The nodes, those that another needs at its beginning before it.

    Raises:
        ValueError: a cycle in which each needs the next, which only registered classes can make.
    """
    begun: dict[int, bool] = {}
    for outer in nodes.values():
        stack = [] if id(outer) in begun else [(outer, iter(_container(outer).needed(outer)))]
        begun.setdefault(id(outer), False)
        while stack:
            node, needed = stack[-1]
            for child in needed:
                if id(child) not in nodes or begun.get(id(child)):
                    continue
                if id(child) in begun:
                    raise ValueError(f"a {type(child).__name__} that must exist before it can be made")
                begun[id(child)] = False
                stack.append((child, iter(_container(child).needed(child))))
                break
            else:
                stack.pop()
                begun[id(node)] = True
                yield node


def _container(node: Any) -> Container:
    kind = KINDS[type(node)]
    assert isinstance(kind, Container)
    return kind
