"""Playwright's objects for callers on other loops: calls go through the portal, what comes back is wrapped.

Plain values pass as they are. An async method becomes a call through the portal: awaitable on a loop,
blocking on a plain thread. Playwright objects that come back (locators, frames, responses, handles) are
proxied too, alone or in lists and dictionaries.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from playwright.async_api import Error as PlaywrightError

from arachne_pool.portal import Portal


class Lent:
    """Whether a lease still holds; shared by the lease and all proxies that came from it."""

    __slots__ = ("lease_id", "valid")

    def __init__(self, lease_id: str) -> None:
        self.lease_id = lease_id
        self.valid = True

    def end(self) -> None:
        self.valid = False

    def check(self) -> None:
        if not self.valid:
            raise RuntimeError(f"{self.lease_id} has ended: use its page within its block only")


def _is_playwright(thing: object) -> bool:
    return type(thing).__module__.startswith("playwright.async_api") and not isinstance(
        thing, (BaseException, type)
    )


def _wrapped(thing: Any, make: Callable[[Any], Any]) -> Any:
    """The thing with every Playwright object in it proxied."""
    if isinstance(thing, list):
        return [_wrapped(each, make) for each in thing]
    if isinstance(thing, dict):
        return {key: _wrapped(value, make) for key, value in thing.items()}
    return make(thing) if _is_playwright(thing) else thing


def _bare(thing: Any) -> Any:
    """The thing with every proxy in it replaced by what it stands for."""
    if isinstance(thing, Proxy):
        return thing._thing
    if isinstance(thing, list):
        return [_bare(each) for each in thing]
    if isinstance(thing, dict):
        return {key: _bare(value) for key, value in thing.items()}
    return thing


class Proxy:
    """Stands for one Playwright object outside its home loop."""

    __slots__ = ("_blocks", "_lent", "_portal", "_thing")

    def __init__(self, thing: Any, portal: Portal, lent: Lent, blocks: bool) -> None:
        self._thing = thing
        self._portal = portal
        self._lent = lent
        self._blocks = blocks

    def __repr__(self) -> str:
        return f"<proxy of {self._thing!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Proxy) and self._thing is other._thing

    def __hash__(self) -> int:
        return hash(id(self._thing))

    def _make(self, thing: Any) -> Proxy:
        return Proxy(thing, self._portal, self._lent, self._blocks)

    def __getattr__(self, name: str) -> Any:
        self._lent.check()
        kind = type(self._thing)
        declared = inspect.getattr_static(kind, name, None)
        if isinstance(declared, property):
            return _wrapped(getattr(self._thing, name), self._make)
        method = getattr(self._thing, name)
        if not callable(method):
            return method
        if name.startswith("expect_"):
            raise PlaywrightError(
                f"{kind.__name__}.{name} needs the loop of the page: use it in a function given to pool.run"
            )
        if inspect.iscoroutinefunction(declared):
            return partial(self._call_sync if self._blocks else self._call, method)
        return partial(self._direct, method)

    async def _call(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        self._lent.check()
        value = await self._portal.call(partial(method, *map(_bare, args), **_bare(named)))
        return _wrapped(value, self._make)

    def _call_sync(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        self._lent.check()
        value = self._portal.call_sync(partial(method, *map(_bare, args), **_bare(named)))
        return _wrapped(value, self._make)

    def _direct(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """A plain method, such as ``locator()``: it only makes an object and waits for nothing."""
        self._lent.check()
        return _wrapped(method(*map(_bare, args), **_bare(named)), self._make)


def marshalled(thing: Any, portal: Portal, lent: Lent) -> Any:
    """A proxy whose methods are awaited, for a caller on another loop."""
    return Proxy(thing, portal, lent, blocks=False)


def blocking(thing: Any, portal: Portal, lent: Lent) -> Any:
    """A proxy whose methods block, for a plain thread."""
    return Proxy(thing, portal, lent, blocks=True)
