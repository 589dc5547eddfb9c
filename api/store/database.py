"""The database, usable from any loop: one engine for each, sessions that read and sessions that write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from api.store.sqlite import open_engine, sqlite_url
from arachne_pool import LoopLocal

READERS = 4
"""Connections that read at a time, on each loop."""


@dataclass(frozen=True, slots=True)
class _Engines:
    read: AsyncEngine
    write: AsyncEngine


class Database:
    """A database file. Made anywhere, at import too: nothing is opened before the first session.

    The tables are made by :func:`api.store.migrate.migrate`, not here.
    """

    def __init__(self, where: str | Path) -> None:
        self.url = sqlite_url(where)
        self._engines = LoopLocal(self._open, close=_dispose)

    def __repr__(self) -> str:
        return f"<database {self.url.database}>"

    def _open(self) -> _Engines:
        # Writers of one loop queue for one connection, in order: cheaper and fairer than several
        # connections that poll for SQLite's lock.
        return _Engines(
            read=open_engine(
                self.url,
                begin="DEFERRED",
                connections=READERS,
                pragmas=("foreign_keys = ON", "query_only = ON"),
            ),
            write=open_engine(self.url, begin="IMMEDIATE", connections=1),
        )

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """A session that sees one state of the database and can't write. It never waits for a writer."""
        engines = self._engines.get()
        async with AsyncSession(engines.read, expire_on_commit=False, autoflush=False) as session:
            yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """A session that is the only writer, from the block's first line to its end.

        Commits when the block ends, rolls back when it raises. Keep the block short, and never open
        another one inside it: the inner would wait for the outer.
        """
        engines = self._engines.get()
        async with AsyncSession(engines.write, expire_on_commit=False) as session, session.begin():
            await session.connection()  # begins now: what the block checks first holds until its end
            yield session

    async def close(self) -> None:
        """Close this loop's connections. Twice is quiet; a later session opens them again."""
        await self._engines.aclose()


async def _dispose(engines: _Engines) -> None:
    await engines.read.dispose()
    await engines.write.dispose()
