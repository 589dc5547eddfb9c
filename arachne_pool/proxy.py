"""Playwright's objects for callers on other loops: the same classes, each call carried to the home loop.

A proxy's class is derived from Playwright's own class, method by method, when the first of its kind is met,
so that ``isinstance`` holds, type checkers see Playwright's types, and a method that a new Playwright brings
works without our doing:

- an async method becomes a call through the portal: awaited on a loop, blocking on a plain thread;
- a plain one that makes an object (``locator``) is called in place: it waits for nothing; one that returns
  nothing (``on``, ``set_default_timeout``) is posted to the home loop, before any later call;
- ``expect_*`` become blocks of the caller's kind; properties are read in place;
- handlers run on the caller's loop, on plain threads in a worker thread; predicates run at home, where
  Playwright needs their answer at once.

What comes back is proxied too, alone, in lists and in dictionaries.
"""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import Callable
from functools import cache, partial, wraps
from types import TracebackType
from typing import Any, cast

from playwright import async_api
from playwright.async_api import Route

from arachne_pool.portal import Portal
from arachne_pool.workers import in_worker

HANDLERS = frozenset({"f", "handler", "callback", "on_frame"})
"""Parameters of Playwright's methods that are called back later; any other callable is a predicate."""


class Lent:
    """Whether a lease still holds, and what it has handed out; shared by all proxies that came from it."""

    def __init__(self, lease_id: str) -> None:
        self.lease_id = lease_id
        self.valid = True
        self.proxies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.handlers: dict[Any, Any] = {}

    def end(self) -> None:
        self.valid = False
        self.handlers.clear()

    def check(self) -> None:
        if not self.valid:
            raise RuntimeError(f"{self.lease_id} has ended: use its page within its block only")


class Way:
    """How one lease's proxies reach home: the portal, the lease, the caller's loop or None for a thread."""

    def __init__(self, portal: Portal, lent: Lent, loop: asyncio.AbstractEventLoop | None) -> None:
        self.portal = portal
        self.lent = lent
        self.loop = loop

    def wrap(self, thing: Any) -> Any:
        """The thing with every Playwright object in it proxied."""
        return _exchanged(thing, self._proxy, {})

    def _proxy(self, thing: Any) -> Any:
        if not _is_playwright(thing):
            return thing
        proxy = self.lent.proxies.get(id(thing))
        if proxy is None or proxy._thing is not thing:
            made: Any = object.__new__(proxy_class(cast(Any, type(thing)), self.loop is None))
            made._thing, made._way = thing, self
            self.lent.proxies[id(thing)] = proxy = made
        return proxy

    # The three ways of a call ------------------------------------------------------------------------

    async def call(self, method: Callable[[], Any]) -> Any:
        self.lent.check()
        return self.wrap(await self.portal.call(method))

    def call_sync(self, method: Callable[[], Any]) -> Any:
        self.lent.check()
        return self.wrap(self.portal.call_sync(method))

    def in_place(self, method: Callable[[], Any]) -> Any:
        self.lent.check()
        return self.wrap(method())

    def post(self, method: Callable[[], Any]) -> None:
        self.lent.check()
        self.portal.post(method)

    # What is called back -----------------------------------------------------------------------------

    def arguments(self, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The call's arguments as Playwright shall get them, bound to their names."""
        bound = inspect.signature(function).bind(None, *args, **named)
        for name, value in bound.arguments.items():
            if callable(value) and not isinstance(value, _Proxied):
                bound.arguments[name] = self.handler(value) if name in HANDLERS else self.predicate(value)
            else:
                bound.arguments[name] = bare(value)
        return bound.args[1:], bound.kwargs

    def predicate(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return _like(call, lambda *args: call(*map(self.wrap, args)))

    def handler(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same for the same handler, so that it can be taken away again."""
        known = self.lent.handlers.get(call)
        if known is None:
            deliver = self._in_worker if self.loop is None else self._on_callers_loop
            if self.loop is None and inspect.iscoroutinefunction(call):
                raise TypeError(f"{call!r} is async, but a plain thread has no loop to run it on")
            known = self.lent.handlers[call] = _like(call, partial(deliver, call))
        return known

    def _in_worker(self, call: Callable[..., Any], *args: Any) -> Any:
        return in_worker(call, *map(self.wrap, args))

    def _on_callers_loop(self, call: Callable[..., Any], *args: Any) -> Any:
        """Hand it over at once, so that order is kept; the result is awaited at home, holding up nobody."""
        home = asyncio.get_running_loop()
        done: asyncio.Future[Any] = home.create_future()
        loop = self.loop
        assert loop is not None

        async def run() -> None:
            try:
                value = call(*map(self.wrap, args))
                if inspect.isawaitable(value):
                    value = await value
            except BaseException as error:  # noqa: BLE001 - told at home, as Playwright's own would be
                home.call_soon_threadsafe(_settle, done, None, error)
            else:
                home.call_soon_threadsafe(_settle, done, bare(value), None)

        def begin() -> None:
            task = loop.create_task(run(), name="arachne handler")
            _RUNNING.add(task)
            task.add_done_callback(_RUNNING.discard)

        try:
            loop.call_soon_threadsafe(begin)
        except RuntimeError:  # the caller's loop has closed
            return _abandoned(args)
        return _outcome(done, loop, args)


_RUNNING: set[asyncio.Task[None]] = set()
"""Keeps handlers referenced while they run; a loop holds its tasks only weakly."""


def _settle(done: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(value)
    else:
        done.set_exception(
            error if isinstance(error, Exception) else RuntimeError(f"a handler ended by {error!r}")
        )


async def _outcome(done: asyncio.Future[Any], loop: asyncio.AbstractEventLoop, args: tuple[Any, ...]) -> Any:
    while not done.done():
        await asyncio.wait((done,), timeout=1.0)
        if loop.is_closed() and not done.done():
            return await _abandoned(args)
    return done.result()


async def _abandoned(args: tuple[Any, ...]) -> None:
    """Nobody is left to say what becomes of a route: the request must not hang for ever."""
    if args and isinstance(args[0], Route):
        await args[0].abort()


class _Proxied:
    """Marks the classes made here."""

    _thing: Any
    _way: Way


def bare(thing: Any) -> Any:
    """The thing with every proxy in it replaced by what it stands for."""
    return _exchanged(thing, lambda each: each._thing if isinstance(each, _Proxied) else each, {})


def _exchanged(thing: Any, exchange: Callable[[Any], Any], seen: dict[int, Any]) -> Any:
    """A copy of lists and dictionaries with each leaf exchanged; what refers to itself still does."""
    if type(thing) not in (list, dict, tuple):
        return exchange(thing)
    if id(thing) in seen:
        return seen[id(thing)]
    if isinstance(thing, tuple):
        return tuple(_exchanged(each, exchange, seen) for each in thing)
    if isinstance(thing, list):
        made: Any = seen.setdefault(id(thing), [])
        made.extend(_exchanged(each, exchange, seen) for each in thing)
        return made
    made = seen.setdefault(id(thing), {})
    made.update({key: _exchanged(value, exchange, seen) for key, value in thing.items()})
    return made


def _is_playwright(thing: object) -> bool:
    kind = type(thing)
    return hasattr(kind, "_impl_obj") or (
        kind.__module__.startswith("playwright.async_api") and hasattr(thing, "_impl_obj")
    )


def _like(call: Callable[..., Any], stand_in: Callable[..., Any]) -> Callable[..., Any]:
    """Playwright looks at how many arguments a callable takes, and passes no more: look like the original."""
    try:
        count = len([p for p in inspect.signature(call).parameters.values() if p.kind in _POSITIONAL])
        variadic = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return stand_in
    if variadic:
        return stand_in

    def none() -> Any:
        return stand_in()

    def one(first: Any) -> Any:
        return stand_in(first)

    def two(first: Any, second: Any, *more: Any) -> Any:
        return stand_in(first, second, *more)

    return (none, one, two)[min(count, 2)]


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@cache
def proxy_class(kind: type[Any], blocks: bool) -> type:
    """The class of proxies of this class of Playwright's, for loops or for plain threads."""
    body: dict[str, Any] = {
        "__doc__": kind.__doc__,
        "__repr__": lambda self: f"<proxy of {self._thing!r}>",
        "__str__": lambda self: str(self._thing),
        "_impl_obj": property(_no_impl),
        "__enter__": lambda self: self,
        "__exit__": lambda self, *_: self.close(),
    }
    for name in dir(kind):
        if not name.startswith("_"):
            member = inspect.getattr_static(kind, name)
            if isinstance(member, property):
                body[name] = _property(name, member)
            elif inspect.isfunction(member):
                body[name] = _method(name, member, blocks)
    return type(f"{kind.__name__}Proxy", (kind, _Proxied), body)


def _no_impl(self: Any) -> Any:
    raise RuntimeError(
        f"{type(self).__name__} was given to Playwright's own code on a foreign loop: "
        "use arachne_pool.expect for assertions, or do it in a function given to pool.run"
    )


def _property(name: str, member: property) -> property:
    def read(self: Any) -> Any:
        return self._way.in_place(lambda: getattr(self._thing, name))

    return property(read, doc=member.__doc__)


def _method(name: str, member: Callable[..., Any], blocks: bool) -> Callable[..., Any]:
    if name.startswith("expect_"):
        send: Callable[[Way, Callable[[], Any]], Any] = _SyncExpected if blocks else _Expected
    elif inspect.iscoroutinefunction(member):
        send = Way.call_sync if blocks else Way.call
    elif inspect.signature(member).return_annotation in (None, "None"):
        send = Way.post
    else:
        send = Way.in_place

    @wraps(member)
    def method(self: Any, *args: Any, **named: Any) -> Any:
        given, more = self._way.arguments(member, args, named)
        return send(self._way, partial(member, self._thing, *given, **more))

    return method


# `async with page.expect_...() as info` ------------------------------------------------------------------


class _Info:
    """What is expected; ``value`` is it, proxied: awaited on loops, plain on threads."""

    def __init__(self, way: Way, info: Any) -> None:
        self._way = way
        self._info = info

    def is_done(self) -> bool:
        return bool(self._info.is_done())

    @property
    def value(self) -> Any:
        take = self._way.call_sync if self._way.loop is None else self._way.call
        return take(lambda: self._info.value)


class _Expected:
    """On loops."""

    def __init__(self, way: Way, method: Callable[[], Any]) -> None:
        self._way = way
        self._method = method
        self._block: Any = None

    async def _enter(self) -> Any:
        self._block = self._method()  # at home: it makes a future of the running loop
        return await self._block.__aenter__()

    async def __aenter__(self) -> _Info:
        self._way.lent.check()
        return _Info(self._way, await self._way.portal.call(self._enter))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._way.portal.call(self._block.__aexit__, kind, error, trace)


class _SyncExpected(_Expected):
    """On plain threads."""

    def __enter__(self) -> _Info:
        self._way.lent.check()
        return _Info(self._way, self._way.portal.call_sync(self._enter))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._way.portal.call_sync(self._block.__aexit__, kind, error, trace)


# For the pool and its users ------------------------------------------------------------------------------


def marshalled(thing: Any, portal: Portal, lent: Lent) -> Any:
    """A proxy whose methods are awaited, for a caller on the running loop."""
    return Way(portal, lent, asyncio.get_running_loop()).wrap(thing)


def blocking(thing: Any, portal: Portal, lent: Lent) -> Any:
    """A proxy whose methods block, for a plain thread."""
    return Way(portal, lent, None).wrap(thing)


def expect(actual: Any, message: str | None = None) -> Any:
    """Playwright's ``expect`` for pages and locators of any lease, wherever its caller runs."""
    if isinstance(actual, _Proxied):
        return actual._way.wrap(async_api.expect(actual._thing, message))
    return async_api.expect(actual, message)
