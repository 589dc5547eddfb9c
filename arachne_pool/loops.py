"""One value per event loop, made lazily on that loop and gone with it.

Where the values live is the point. A mapping of ours from loops to values, weak keys or not, keeps a
loop alive as soon as a value refers to its loop, and an asyncio.Lock does from its first contended wait.
So each value is stored on the loop object itself: a loop and its values are one island, which the
garbage collector takes as a whole. It also makes loops compare by identity, whatever their ``__eq__``.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from types import TracebackType
from typing import Any, Generic, TypeAlias, TypeVar, cast, overload

T = TypeVar("T")
_Cells: TypeAlias = "weakref.WeakKeyDictionary[LoopLocal[Any], _Cell[Any]]"

_ON_LOOP = "_arachne_values"
"""The attribute of a loop that holds its values. Loops of asyncio and of uvloop take attributes."""


class _Cell(Generic[T]):
    """One loop's value: being made (by ``maker``, or within ``get``), or there."""

    __slots__ = ("__weakref__", "keeper", "loop", "made", "maker", "value")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.made = False
        self.value: T | None = None
        self.maker: asyncio.Task[Any] | None = None
        self.keeper: AsyncGenerator[None, None] | None = None


class LoopLocal(Generic[T]):
    """One value per running event loop, made by ``factory`` on that loop when it is first asked for.

    May be made at import, in any thread, with or without a loop, and shared by all of them. The factory
    runs once per loop, however many tasks ask at once; what it raises is not kept. A value whose loop is
    no longer referred to goes with it, also when the value refers to that loop.

    ``close(value)``, plain or async, runs on the value's own loop:

    - when that loop ends properly (``asyncio.run``, ``asyncio.Runner``, uvicorn, or anything else that
      calls ``loop.shutdown_asyncgens()``), after its tasks were cancelled. Closes of one loop run
      together; what they raise goes to the loop's exception handler;
    - when this LoopLocal is garbage-collected while the loop still runs;
    - at ``await local.aclose()`` on the loop, or ``local.close_all()`` from anywhere.

    It does not run when a loop is closed by hand without ``shutdown_asyncgens()``, or is killed: nothing
    can run on a closed loop. Such a value is dropped with the loop, or by ``close_all()``.

    A value that refers to this LoopLocal keeps it alive until the loop goes.
    """

    @overload
    def __init__(
        self, factory: Callable[[], Awaitable[T]], close: Callable[[T], object] | None = None
    ) -> None: ...
    @overload
    def __init__(self, factory: Callable[[], T], close: Callable[[T], object] | None = None) -> None: ...
    def __init__(self, factory: Callable[[], Any], close: Callable[[T], object] | None = None) -> None:
        self._factory = factory
        self._close = close
        # Only for close_all and repr. Sets of weak references are changed by single steps in C, so that
        # threads and the garbage collector need no lock here (a collector that takes locks deadlocks).
        self._cells: set[weakref.ref[_Cell[T]]] = set()

    def __repr__(self) -> str:
        name = getattr(self._factory, "__qualname__", repr(self._factory))
        return f"<loop-local {name}; {len(self._cells)} made>"

    def get(self) -> T:
        """The running loop's value, for a plain factory or a value that ``aget`` made before.

        Raises RuntimeError without a running loop, and while the value is still being made.
        """
        cells = _cells_of_running_loop("get()")
        cell = cells.get(self)
        if cell is None:
            cell = cells[self] = _Cell(asyncio.get_running_loop())
            try:
                value = self._factory()
                if inspect.iscoroutine(value):
                    value.close()
                    raise TypeError(f"the factory of {self!r} is async: use `await local.aget()`")
                self._keep(cell, value)
            except BaseException:
                cells.pop(self, None)
                raise
        if not cell.made:
            how = "asked for itself while being made" if cell.maker is None else "is still being made"
            raise RuntimeError(f"the value of {self!r} {how}: use `await local.aget()` in another task")
        return cast(T, cell.value)

    async def aget(self) -> T:
        """The running loop's value; what the factory returns is awaited if it is awaitable.

        The factory runs in a task of its own: a caller that is cancelled cancels nobody else, and the
        value is made all the same.
        """
        cells = _cells_of_running_loop("aget()")
        cell = cells.get(self)
        if cell is None:
            loop = asyncio.get_running_loop()
            cell = cells[self] = _Cell(loop)
            cell.maker = loop.create_task(self._make(cell), name=f"make {self!r}")
            cell.maker.add_done_callback(functools.partial(self._after_making, cells, cell))
        elif cell.made:
            return cast(T, cell.value)
        maker = cell.maker
        if maker is None or maker is asyncio.current_task():
            raise RuntimeError(f"the value of {self!r} asked for itself while being made")
        # Not `await maker`: a cancelled waiter would cancel it for all.
        await asyncio.wait([maker])
        if maker.cancelled():
            # Passed on, it would look to the waiters as if they were cancelled themselves.
            raise RuntimeError(f"the task `{maker.get_name()}` was cancelled: ask again")
        maker.result()
        return cast(T, cell.value)

    async def aclose(self) -> None:
        """Close the running loop's value now, after it was made; the next ``get`` makes a new one.

        Quiet when there is none. Raises what ``close`` raises.
        """
        cells = _cells_of_running_loop("aclose()")
        cell = cells.get(self)
        if cell is not None and cell.maker is not None:
            await asyncio.wait([cell.maker])
        if cell is None or cells.get(self) is not cell:
            return
        cells.pop(self)
        self._cells.discard(weakref.ref(cell))
        if cell.keeper is not None:
            await cell.keeper.aclose()

    def close_all(self) -> list[concurrent.futures.Future[None]]:
        """From any thread: close the value of each running loop there, one future for each.

        Waiting for the futures is up to the caller (``asyncio.wrap_future`` on a loop, never
        ``result()`` there). Values of closed loops are dropped without their close. A loop that stands
        still but is not closed keeps its value.
        """
        closing = []
        for ref in list(self._cells):
            cell = ref()
            if cell is None:
                continue
            if cell.loop.is_closed():
                _cells_on(cell.loop).pop(self, None)
                self._cells.discard(ref)
            elif cell.loop.is_running():
                work = self.aclose()
                try:
                    closing.append(asyncio.run_coroutine_threadsafe(work, cell.loop))
                except RuntimeError:
                    work.close()
                    if not cell.loop.is_closed():
                        raise
                    # It ended in this very moment, and closed the value in its own way.
        return closing

    async def _make(self, cell: _Cell[T]) -> None:
        # aget sets it too; but an eager task runs before create_task returns.
        cell.maker = asyncio.current_task()
        value = self._factory()
        if inspect.isawaitable(value):
            value = await value
        self._keep(cell, value)

    def _after_making(self, cells: _Cells, cell: _Cell[T], maker: asyncio.Task[None]) -> None:
        # A callback, because a task that is cancelled before its first step never runs its coroutine.
        cell.maker = None
        if not cell.made:
            cells.pop(self, None)
        if not maker.cancelled():
            # Every waiter gets the error; if all of them have left, nobody is to be told.
            maker.exception()

    def _keep(self, cell: _Cell[T], value: T) -> None:
        if self._close is not None:
            keeper = _closes_at_end(value, self._close)
            # The first step makes the loop know the generator (it has no await: it ends at the yield).
            try:
                keeper.__anext__().send(None)
            except StopIteration:
                cell.keeper = keeper
        cell.value = value
        cell.made = True
        self._cells.add(weakref.ref(cell, self._cells.discard))


async def _closes_at_end(value: T, close: Callable[[T], object]) -> AsyncGenerator[None, None]:
    """Suspended for the life of the value. An async generator is the one thing that every loop, also
    uvloop, promises to end on itself: in ``shutdown_asyncgens``, or when it is garbage-collected.
    """
    try:
        yield
    finally:
        result = close(value)
        if inspect.isawaitable(result):
            await result


def _cells_of_running_loop(what: str) -> _Cells:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            f"LoopLocal.{what} needs a running event loop: call it from a coroutine or a loop's callback"
        ) from None
    return _cells_on(loop)


def _cells_on(loop: asyncio.AbstractEventLoop) -> _Cells:
    """The values on this loop. Only the loop's own thread adds to them, so they need no lock."""
    try:
        held = loop.__dict__
    except AttributeError:
        raise TypeError(
            f"{type(loop).__qualname__} takes no attributes: derive a Python class from it"
        ) from None
    cells = held.get(_ON_LOOP)
    if cells is None:
        cells = held[_ON_LOOP] = weakref.WeakKeyDictionary()
    return cast(_Cells, cells)


class LoopLock:
    """``async with lock:`` excludes the tasks of one loop from each other, on every loop.

    It is **not** exclusion between loops: tasks on two loops may hold it at the same time. What several
    loops share needs state that no loop owns, or work that is carried to one loop (the pool's portal).
    May be made at import.
    """

    def __init__(self) -> None:
        self._locks = LoopLocal(asyncio.Lock)

    def __repr__(self) -> str:
        return f"<loop-lock; {len(self._locks._cells)} made>"

    def locked(self) -> bool:
        """Whether a task of the running loop holds it."""
        return self._locks.get().locked()

    async def __aenter__(self) -> None:
        await self._locks.get().acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._locks.get().release()
