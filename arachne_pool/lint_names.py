"""What the names of one module stand for, and whether calling them makes a loop-bound primitive.

Names are followed within the module only: it is read, never imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_PER_LOOP = "make it per loop: LoopLocal(lambda: {name}(...))"
_IN_COROUTINE = "make it in the coroutine that waits for it"
_IN_STARTUP = "open it in the app's start-up, or per loop: LoopLocal(open, close=...)"

PRIMITIVES: dict[str, str] = {
    "asyncio.Lock": "use LoopLock()",
    **{
        f"asyncio.{name}": _PER_LOOP
        for name in (
            "Semaphore", "BoundedSemaphore", "Event", "Condition", "Barrier", "Queue", "PriorityQueue", "LifoQueue",
        )
    },
    "asyncio.Future": _IN_COROUTINE,
    **{f"anyio.{name}": _PER_LOOP for name in ("Lock", "Event", "Condition", "Semaphore", "CapacityLimiter")},
    "anyio.create_memory_object_stream": _PER_LOOP,
    "aiohttp.ClientSession": _IN_STARTUP,
    "aiohttp.TCPConnector": _IN_STARTUP,
    "aiohttp.UnixConnector": _IN_STARTUP,
}  # fmt: skip
"""What must not be made at import, and what to do instead.

Left out on purpose: httpx.AsyncClient and SQLAlchemy's async engines, because their own guides make them at
import and nothing of a loop is in them until a connection is open. (Used on a second loop they fail or hang
all the same: keep them in a LoopLocal where there may be several.)
asyncio.TaskGroup, Timeout and Runner, which take their loop at ``async with``; trio's, which has no loops;
janus and other queues made to be shared between threads.
"""

_FIELDS = {"dataclasses.field", "attr.ib", "attr.field", "attrs.field", "pydantic.Field"}
CACHES = {"functools.cache", "functools.lru_cache"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """The names of one module: what each stands for, and what comes of calling it."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.names: dict[str, str] = {}
        self.values: dict[str, list[ast.expr]] = {}
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self._asked: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    self.names[alias.asname or whole] = whole
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    if alias.name == "*":
                        starred = (name for name in PRIMITIVES if name.startswith(f"{node.module}."))
                        self.names |= {name.rpartition(".")[2]: name for name in starred}
                    else:
                        self.names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for statement in own(tree.body):
            if isinstance(statement, Function):
                self.functions[statement.name] = statement
                self.names.pop(statement.name, None)
            elif isinstance(statement, ast.ClassDef):
                self.classes[statement.name] = statement
                self.names.pop(statement.name, None)
            for name, value in assigned(statement):
                self.values.setdefault(name, []).append(value)

    def dotted(self, node: ast.expr) -> str:
        """The full name of what an expression names (``asyncio.Lock``), or ''."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            of = self.dotted(node.value)
            return f"{of}.{node.attr}" if of else ""
        return self.dotted(node.value) if isinstance(node, ast.Subscript) else ""

    def primitive(self, node: ast.expr) -> str:
        """The primitive that this expression names, also by its inner module (asyncio.locks.Lock), or ''."""
        first, _, rest = self.dotted(node).partition(".")
        name = f"{first}.{rest.rpartition('.')[2]}"
        return name if name in PRIMITIVES else ""

    def makes(self, called: ast.expr) -> str:
        """The primitive that calling this gives, or ''."""
        if found := self.primitive(called):
            return found
        if called in self._asked:  # a name that leads back to itself
            return ""
        self._asked.add(called)
        try:
            return self._makes(called)
        finally:
            self._asked.discard(called)

    def _makes(self, called: ast.expr) -> str:
        match called:
            case ast.Subscript():
                return self.makes(called.value)
            case ast.Lambda():
                return self.gives(called.body)
            case ast.Call(args=[first, *_]) if self.dotted(called.func) in {"functools.partial", *CACHES}:
                return self.makes(first)
            case ast.Name(id=name):
                if function := self.functions.get(name):
                    return self.returns(function)
                if cls := self.classes.get(name):
                    return self.constructs(cls)
                return first_of(self.makes(value) for value in self.values.get(name, ()))
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in self.classes:
                methods = (f for f in self.classes[name].body if isinstance(f, Function) and f.name == attr)
                return first_of(map(self.returns, methods))
            case ast.Attribute(attr="create_future"):
                return "asyncio.Future"
        return ""

    def made_in(self, node: ast.AST) -> Iterator[tuple[ast.Call, str]]:
        """The calls that evaluating this carries out and that give a primitive."""
        for part in evaluated(node):
            if isinstance(part, ast.Call) and (name := self.makes(part.func)):
                yield part, name

    def gives(self, node: ast.AST | None) -> str:
        return first_of(name for _, name in self.made_in(node)) if node else ""

    def returns(self, function: Function) -> str:
        """The primitive in what a plain function returns, or ''."""
        nodes = list(own(function.body))
        if isinstance(function, ast.AsyncFunctionDef) or function in self._asked:
            return ""
        if any(isinstance(part, ast.Yield | ast.YieldFrom) for node in nodes for part in evaluated(node)):
            return ""
        self._asked.add(function)
        try:
            local = self.local(nodes)
            return first_of(
                local.get(node.value.id, "") if isinstance(node.value, ast.Name) else self.gives(node.value)
                for node in nodes
                if isinstance(node, ast.Return)
            )
        finally:
            self._asked.discard(function)

    def local(self, nodes: Iterable[ast.stmt]) -> dict[str, str]:
        """The local names that a primitive was assigned to."""
        given = ((name, self.gives(value)) for node in nodes for name, value in assigned(node))
        return {name: primitive for name, primitive in given if primitive}

    def constructs(self, cls: ast.ClassDef) -> str:
        """The primitive that making an instance makes: by constructor, default factory or base class."""
        if cls in self._asked:
            return ""
        self._asked.add(cls)
        try:
            return first_of(self._constructs(cls))
        finally:
            self._asked.discard(cls)

    def _constructs(self, cls: ast.ClassDef) -> Iterator[str]:
        makers = [f for f in cls.body if isinstance(f, Function) and f.name in {"__init__", "__post_init__"}]
        for maker in makers:
            for node in own(maker.body):
                yield self.gives(node)
        for field in self.fields(cls):
            for given in field.keywords:
                if given.arg in {"default_factory", "factory"}:
                    yield self.makes(given.value)
        calls = (part for maker in makers for part in ast.walk(maker) if isinstance(part, ast.Call))
        if any(self.dotted(call.func) == "super" for call in calls) or "__init__" not in {
            m.name for m in makers
        }:
            yield from map(self.makes, cls.bases)

    def fields(self, cls: ast.ClassDef) -> Iterator[ast.Call]:
        for statement in cls.body:
            value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Call) and self.dotted(value.func) in _FIELDS:
                yield value

    def at_import(self) -> Iterator[tuple[str, ast.expr]]:
        """Every expression that importing the module evaluates, with the code of where it stands."""
        return self._at_import(self.tree.body, "LOOP101")

    def _at_import(self, body: Iterable[ast.AST], code: str) -> Iterator[tuple[str, ast.expr]]:
        plain = "LOOP102" if code == "LOOP104" else code
        for node in body:
            if isinstance(node, Function):
                yield from ((plain, decorator) for decorator in node.decorator_list)
                yield from (("LOOP103", default) for default in defaults(node.args))
            elif isinstance(node, ast.ClassDef):
                yield from ((plain, part) for part in (*node.decorator_list, *node.bases))
                yield from ((plain, keyword.value) for keyword in node.keywords)
                yield from self._at_import(node.body, "LOOP104" if self._is_data(node) else "LOOP102")
            elif isinstance(node, ast.AnnAssign):
                if node.value:
                    yield code, node.value
            elif isinstance(node, ast.If) and self._not_at_import(node.test):
                yield from self._at_import(node.orelse, plain)
            elif isinstance(node, ast.expr):
                yield plain, node
            else:
                yield from self._at_import(ast.iter_child_nodes(node), code)

    def _is_data(self, cls: ast.ClassDef) -> bool:
        marks = [d.func if isinstance(d, ast.Call) else d for d in cls.decorator_list] + cls.bases
        known = {"dataclass", "define", "frozen", "mutable", "s", "BaseModel"}
        return any(self.dotted(mark).rpartition(".")[2] in known for mark in marks)

    def _not_at_import(self, test: ast.expr) -> bool:
        if isinstance(test, ast.Compare):
            return self.dotted(test.left) == "__name__" and isinstance(test.ops[0], ast.Eq)
        return self.dotted(test).rpartition(".")[2] == "TYPE_CHECKING"

    def scopes(self) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
        """The module and each function and class in it, with the statements that are their own."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Module | ast.ClassDef | Function):
                yield node, list(own(node.body))


# Walks ------------------------------------------------------------------------------------------------


def own(body: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """The statements of one scope, also those within others, but not of functions and classes in it."""
    for node in body:
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, Function | ast.ClassDef):
            within = ast.iter_child_nodes(node)
            yield from own(n for n in within if isinstance(n, ast.stmt | ast.ExceptHandler | ast.match_case))


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated with this node: no lambda's body, no annotation, and no statement within it."""
    yield node
    for name, field in ast.iter_fields(node):
        if name in {"annotation", "returns"} or (isinstance(node, ast.Lambda) and name == "body"):
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.stmt):
                yield from evaluated(child)


def assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Each name that the statement gives a value, and that value."""
    for target, value in targets(statement):
        if isinstance(target, ast.Name):
            yield target.id, value


def targets(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in evaluated(statement):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    yield from zip(target.elts, node.value.elts, strict=False)
                else:
                    yield target, node.value
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value:
            yield node.target, node.value


def defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [default for default in (*arguments.defaults, *arguments.kw_defaults) if default]


def first_of(found: Iterable[str]) -> str:
    return next(filter(None, found), "")
