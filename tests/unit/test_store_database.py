"""The database from several loops at once, and what a locked file does to a loop."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import OperationalError, StatementError

from api.store.database import Database
from api.store.migrate import migrate
from api.store.tables import ArtifactRow


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    await asyncio.to_thread(migrate, tmp_path / "arachne.db")
    database = Database(tmp_path / "arachne.db")
    yield database
    await database.close()


def a_row(name: str, created_at: datetime | None = None) -> ArtifactRow:
    moment = created_at or datetime(2027, 3, 1, 12, tzinfo=UTC)
    return ArtifactRow(id=name, digest="d" * 64, media_type="image/png", size=1, created_at=moment)


async def count(database: Database) -> int | None:
    async with database.read() as session:
        return await session.scalar(select(func.count()).select_from(ArtifactRow))


@contextmanager
def locked_by_another_process(file: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the write lock of this database until its stdin is closed."""
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read(); c.execute('ROLLBACK')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        yield other
        assert other.stdin is not None
        if not other.stdin.closed:
            other.stdin.close()


async def test_each_connection_has_the_pragmas(database: Database) -> None:
    pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    async with database.write() as session:
        writes = [await session.scalar(text(f"PRAGMA {name}")) for name in pragmas]
    async with database.read() as session:
        reads = [await session.scalar(text(f"PRAGMA {name}")) for name in pragmas]

    assert writes == reads == ["wal", 2, 1, 30_000]


async def test_what_a_block_writes_is_there_after_it_and_gone_when_it_raises(database: Database) -> None:
    async with database.write() as session:
        session.add(a_row("kept"))

    async def fails() -> None:
        async with database.write() as session:
            session.add(a_row("dropped"))
            await session.flush()
            raise LookupError

    with pytest.raises(LookupError):
        await fails()
    async with database.read() as session:
        assert list(await session.scalars(select(ArtifactRow.id))) == ["kept"]


async def test_a_reading_session_cannot_write(database: Database) -> None:
    async with database.read() as session:
        with pytest.raises(OperationalError, match="readonly"):
            await session.execute(text("DELETE FROM artifacts"))


async def test_a_reader_sees_one_state_while_another_writes(database: Database) -> None:
    async with database.read() as reader:
        before = await reader.scalar(select(func.count()).select_from(ArtifactRow))
        async with database.write() as writer:
            writer.add(a_row("a"))
        after = await reader.scalar(select(func.count()).select_from(ArtifactRow))

    assert (before, after, await count(database)) == (0, 0, 1)


async def test_a_writing_block_is_the_only_writer_from_its_first_line(
    database: Database, tmp_path: Path
) -> None:
    other = sqlite3.connect(tmp_path / "arachne.db", timeout=0, isolation_level=None)
    async with database.write():
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN IMMEDIATE")
    other.close()


async def test_counting_up_in_many_tasks_loses_nothing(database: Database) -> None:
    async with database.write() as session:
        session.add(a_row("counter"))

    async def up() -> None:
        async with database.write() as session:
            row = await session.get_one(ArtifactRow, "counter")
            row.size += 1

    await asyncio.gather(*(up() for _ in range(50)))

    async with database.read() as session:
        assert (await session.get_one(ArtifactRow, "counter")).size == 51


async def test_two_loops_in_two_threads_and_the_apps_loop_write_at_once(database: Database) -> None:
    together = threading.Barrier(2)

    async def some(name: str) -> None:
        for i in range(40):
            async with database.write() as session:
                session.add(a_row(f"{name}-{i}"))

    def thread(name: str) -> None:
        together.wait(10)
        asyncio.run(some(name))

    await asyncio.gather(asyncio.to_thread(thread, "a"), asyncio.to_thread(thread, "b"), some("app"))

    assert await count(database) == 120


async def test_a_loop_that_ends_takes_its_connections_along(database: Database) -> None:
    def connections() -> int:
        return sum("_connection_worker_thread" in thread.name for thread in threading.enumerate())

    await count(database)
    before = connections()
    for _ in range(3):
        # Without close(): the loop's end is enough.
        await asyncio.to_thread(asyncio.run, count(database))

    assert before > 0
    assert connections() == before


async def test_close_is_quiet_twice_and_a_later_session_opens_again(database: Database) -> None:
    await database.close()
    assert await count(database) == 0
    await database.close()
    await database.close()
    assert await count(database) == 0


async def test_a_writer_that_waits_for_another_process_does_not_stop_the_loop(
    database: Database, tmp_path: Path
) -> None:
    loop = asyncio.get_running_loop()
    await count(database)
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before = loop.time()
            await asyncio.sleep(0.01)
            longest = max(longest, loop.time() - before)

    async def write() -> None:
        async with database.write() as session:
            session.add(a_row("late"))

    with locked_by_another_process(tmp_path / "arachne.db") as other:
        ticker = asyncio.create_task(tick())
        writer = asyncio.create_task(write())
        done, _ = await asyncio.wait([writer], timeout=1.5)
        assert not done, "the writer did not wait for the lock"
        assert await count(database) == 0, "a reader waited for the writer"
        assert other.stdin is not None
        other.stdin.close()
        await asyncio.wait_for(writer, 20)
        ticker.cancel()

    assert await count(database) == 1
    assert longest < 0.5  # the lock was held for 1.5 s


async def test_a_writer_that_gives_up_while_it_waits_leaves_no_lock(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def write() -> None:
        async with database.write() as session:
            session.add(a_row("never"))

    with locked_by_another_process(tmp_path / "arachne.db"):
        writer = asyncio.create_task(write())
        done, _ = await asyncio.wait([writer], timeout=0.2)
        assert not done
        writer.cancel()
    await asyncio.wait([writer], timeout=20)
    assert writer.cancelled()

    async with asyncio.timeout(10), database.write() as session:
        session.add(a_row("next"))
    async with database.read() as session:
        assert list(await session.scalars(select(ArtifactRow.id))) == ["next"]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


# SQLAlchemy drops a connection whose caller was cancelled half way; the collector closes it, and 3.13 says so.
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <sqlite3.Connection")
async def test_callers_who_give_up_at_any_moment_leave_no_lock_and_no_traceback(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def write(name: str) -> None:
        async with database.write() as session:
            session.add(a_row(name))

    other = sqlite3.connect(tmp_path / "arachne.db", timeout=0, isolation_level=None)
    started = time.perf_counter()
    await write("whole")
    one = time.perf_counter() - started
    for i in range(60):
        task = asyncio.create_task(write(f"cut-{i}"))
        await asyncio.wait([task], timeout=one * i / 50)
        task.cancel()
        await asyncio.wait([task], timeout=10)
        assert task.done()
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    other.close()

    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_moments_come_back_in_utc_whatever_zone_they_came_in(database: Database) -> None:
    kabul = timezone(timedelta(hours=4, minutes=30))
    async with database.write() as session:
        session.add(a_row("a", datetime(2027, 1, 1, 3, 0, 0, 123456, tzinfo=kabul)))
    async with database.read() as session:
        row = await session.get_one(ArtifactRow, "a")

    assert row.created_at == datetime(2026, 12, 31, 22, 30, 0, 123456, tzinfo=UTC)
    assert row.created_at.utcoffset() == timedelta(0)
    assert row.expires_at is None


async def test_a_moment_without_a_zone_is_refused(database: Database) -> None:
    async with database.read() as session:
        with pytest.raises(StatementError, match="has no time zone: give a moment in UTC"):
            await session.scalar(select(ArtifactRow).where(ArtifactRow.created_at < datetime(2027, 1, 1)))  # noqa: DTZ001 - meant


@pytest.mark.parametrize(
    ("where", "file"),
    [
        ("/data/a.db", "/data/a.db"),
        (Path("/data/a b.db"), "/data/a b.db"),
        ("sqlite:////data/a.db", "/data/a.db"),
        ("sqlite+aiosqlite:////data/a.db", "/data/a.db"),
    ],
)
def test_a_database_is_named_by_path_or_address(where: str | Path, file: str) -> None:
    database = Database(where)

    assert database.url.drivername == "sqlite+aiosqlite"
    assert repr(database) == f"<database {file}>"


@pytest.mark.parametrize("where", ["sqlite://", "sqlite:///:memory:", ":memory:", "sqlite:////a?mode=ro"])
def test_a_database_without_a_file_is_refused(where: str) -> None:
    with pytest.raises(ValueError, match="give the path of a file"):
        Database(where)


def test_another_kind_of_database_is_refused_without_showing_its_password() -> None:
    with pytest.raises(ValueError, match="only sqlite is served") as refused:
        Database("postgresql://me:secret@localhost/x")
    assert "secret" not in str(refused.value)
