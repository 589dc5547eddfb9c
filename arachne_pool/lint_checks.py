"""Checks for what belongs to an event loop but is made before there is one, on one module's syntax tree.

Each check is a generator ``(module) -> findings`` named in ``CHECKS``; a new kind is a new function there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from arachne_pool.lint_names import (
    CACHES,
    PRIMITIVES,
    Function,
    Module,
    assigned,
    evaluated,
    first_of,
    targets,
)

_RUNNING = {"asyncio.get_running_loop", "asyncio.get_event_loop", "asyncio.new_event_loop"}
_ADDS = {"setdefault", "append", "add", "insert"}
_LOOKS_UP = {"get", "setdefault", "pop", "add", "discard", "remove", "append"}


class Finding(NamedTuple):
    line: int
    column: int
    """Counted in bytes from 0, as ast does."""
    end_line: int
    code: str
    message: str


_WHERE = {
    "LOOP101": "made at import",
    "LOOP102": "made at import, as a class attribute that all instances share",
    "LOOP103": "made at import, as a default that all calls share",
    "LOOP104": "made at import, as a default that all instances share",
}


def made_at_import(module: Module) -> Iterator[Finding]:
    """LOOP101 to 104 by where it stands; LOOP105 when something called there makes it."""
    for code, expression in module.at_import():
        for call, name in module.made_in(expression):
            if module.primitive(call.func):
                yield _finding(call, code, name, _WHERE[code])
            else:
                yield _finding(call, "LOOP105", name, f"made at import, by {ast.unparse(call.func)}()")


def shared_factories(module: Module) -> Iterator[Finding]:
    """LOOP106: a defaultdict made at import that fills itself with them, for whatever loop comes."""
    for _, expression in module.at_import():
        for call in evaluated(expression):
            if (
                isinstance(call, ast.Call)
                and module.dotted(call.func) == "collections.defaultdict"
                and call.args
                and (name := module.makes(call.args[0]))
            ):
                yield _finding(call, "LOOP106", name, "made by a defaultdict that all loops share")


def cached_factories(module: Module) -> Iterator[Finding]:
    """LOOP107: a factory whose cache hands the first loop's primitive to all others."""
    how = "kept for all loops by a cached factory"
    for node in ast.walk(module.tree):
        if isinstance(node, Function) and any(map(_caches(module), node.decorator_list)):
            if name := module.returns(node):
                yield _finding(node, "LOOP107", name, how)._replace(end_line=node.lineno)
        elif (
            isinstance(node, ast.Call)
            and node.args
            and _caches(module)(node.func)
            and (name := module.makes(node.args[0]))
        ):
            yield _finding(node, "LOOP107", name, how)


def _caches(module: Module) -> Callable[[ast.expr], bool]:
    def is_cache(node: ast.expr) -> bool:
        return module.dotted(node.func if isinstance(node, ast.Call) else node) in CACHES

    return is_cache


def lazy_globals(module: Module) -> Iterator[Finding]:
    """LOOP108: made at first use, then kept in a global, a class or a container that all loops share."""

    def is_class(node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id == "cls" or node.id in module.classes
        if isinstance(node, ast.Call):
            return module.dotted(node.func) == "type"
        return isinstance(node, ast.Attribute) and node.attr == "__class__"

    for scope, nodes in module.scopes():
        if not isinstance(scope, Function):
            continue
        declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        inner = {name for node in nodes for name, _ in assigned(node)} - declared
        inner |= {argument.arg for argument in ast.walk(scope.args) if isinstance(argument, ast.arg)}
        shared = (set(module.values) | declared) - inner
        local = module.local(nodes)

        def is_shared(node: ast.expr, shared: set[str] = shared) -> bool:
            if isinstance(node, ast.Name):
                return node.id in shared
            return isinstance(node, ast.Attribute) and is_class(node.value)

        def given(value: ast.expr, local: dict[str, str] = local) -> str:
            return local.get(value.id, "") if isinstance(value, ast.Name) else module.gives(value)

        for node in nodes:
            for target, value in targets(node):
                kept = (
                    (isinstance(target, ast.Name) and target.id in declared)
                    or (isinstance(target, ast.Subscript) and is_shared(target.value))
                    or (isinstance(target, ast.Attribute) and is_class(target.value))
                )
                if kept and (name := given(value)):
                    yield _finding(value, "LOOP108", name, "made lazily but kept where all loops share it")
            for call in evaluated(node):
                if (
                    isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Attribute)
                    and call.func.attr in _ADDS
                    and is_shared(call.func.value)
                    and (name := first_of(map(given, call.args)))
                ):
                    yield _finding(call, "LOOP108", name, "made lazily but kept where all loops share it")


def ids_as_keys(module: Module) -> Iterator[Finding]:
    """LOOP109: id(loop) as a key: the id of a loop that has ended is given to the next one."""
    for _, nodes in module.scopes():
        values = [pair for node in nodes for pair in assigned(node)]
        loops = {
            name
            for name, value in values
            if isinstance(value, ast.Call) and module.dotted(value.func) in _RUNNING
        }

        def ids(node: ast.AST, loops: set[str] = loops) -> list[ast.Call]:
            calls = (part for part in evaluated(node) if isinstance(part, ast.Call) and part.args)
            return [
                call for call in calls if module.dotted(call.func) == "id" and is_loop(call.args[0], loops)
            ]

        def is_loop(node: ast.expr, loops: set[str]) -> bool:
            if isinstance(node, ast.Call):
                return module.dotted(node.func) in _RUNNING
            last = (
                node.id
                if isinstance(node, ast.Name)
                else node.attr
                if isinstance(node, ast.Attribute)
                else ""
            )
            return last in loops or last.lower() == "loop" or last.lower().endswith("_loop")

        named = {name: ids(value) for name, value in values}
        for key in (key for node in nodes for part in evaluated(node) for key in _keys(part)):
            names = [part.id for part in evaluated(key) if isinstance(part, ast.Name)]
            for call in [*ids(key), *(call for name in names for call in named.get(name, ()))]:
                message = (
                    "id(loop) as a key: ids are used again (use LoopLocal, or the loop itself held weakly)"
                )
                yield Finding(
                    call.lineno, call.col_offset, call.end_lineno or call.lineno, "LOOP109", message
                )


def _keys(node: ast.AST) -> list[ast.expr]:
    """The parts of an expression that a mapping or a set is asked for, or given as a key."""
    match node:
        case ast.Subscript(slice=key) | ast.DictComp(key=key) | ast.SetComp(elt=key):
            return [key]
        case ast.Dict(keys=keys):
            return [key for key in keys if key]
        case ast.Set(elts=keys):
            return keys
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn(), *_]):
            return [key]
        case ast.Call(func=ast.Attribute(attr=attr), args=[key, *_]) if attr in _LOOKS_UP:
            return [key]
    return []


def _finding(node: ast.expr | ast.stmt, code: str, name: str, how: str) -> Finding:
    message = f"{name} {how} ({PRIMITIVES[name].format(name=name)})"
    return Finding(node.lineno, node.col_offset, node.end_lineno or node.lineno, code, message)


CHECKS: tuple[Callable[[Module], Iterator[Finding]], ...] = (
    made_at_import,
    shared_factories,
    cached_factories,
    lazy_globals,
    ids_as_keys,
)


_WORDS = {name.partition(".")[0] for name in PRIMITIVES} | {"create_future", "loop"}


def findings(tree: ast.Module, text: str) -> set[Finding]:
    """All that the checks find in one module, of this text."""
    lowered = text.lower()
    if not any(word in lowered for word in _WORDS):  # as in most files
        return set()
    module = Module(tree)
    return {finding for check in CHECKS for finding in check(module)}
