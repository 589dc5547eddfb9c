"""SQLite's own things, in one place: its address, its pragmas, how its transactions begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from sqlalchemy import URL, Connection, event, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

BUSY_TIMEOUT = 30.0
"""Seconds that a connection waits for another one's lock, in its own thread, never on a loop."""


def sqlite_url(where: str | Path) -> URL:
    """The address of a database file, given as a path or as an address; ValueError for any other kind."""
    if isinstance(where, str) and "://" in where:
        url = make_url(where)
        if url.get_backend_name() != "sqlite":
            raise ValueError(f"database {url.render_as_string()}: only sqlite is served, give a file's path")
        url = url.set(drivername="sqlite+aiosqlite")
    else:
        url = URL.create("sqlite+aiosqlite", database=str(where))
    if not url.database or url.database == ":memory:" or url.query:
        # In memory each loop's connections would see a database of their own.
        raise ValueError(f"database {where}: give the path of a file, without options")
    return url.set(database=str(Path(url.database).absolute()))


def database_file(url: URL) -> Path:
    """Where the database lies."""
    return Path(url.database or "")


def open_engine(
    url: URL,
    *,
    begin: Literal["DEFERRED", "IMMEDIATE"],
    connections: int,
    pragmas: tuple[str, ...] = ("foreign_keys = ON",),
) -> AsyncEngine:
    """An engine for the running loop. Opens nothing yet; each connection is a thread of its own."""
    engine = create_async_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=BUSY_TIMEOUT,
        # Sessions end what they began. One more rollback at each return would cost a round trip to the
        # connection's thread, and log a traceback for every caller who gives up in that moment.
        pool_reset_on_return=None,
        # isolation_level None: the driver begins nothing by itself, `_begin` does. Its own way begins
        # late and DEFERRED, and a reader that turns writer then fails at once, whatever the timeout.
        connect_args={"timeout": BUSY_TIMEOUT, "isolation_level": None},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def _set(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for pragma in ("journal_mode = WAL", "synchronous = FULL", *pragmas):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(f"BEGIN {begin}")

    return engine
