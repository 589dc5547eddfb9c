"""Artifacts: kept once, given to their tenant alone, gone when they expire, never lost to a sweep."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import threading
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from api.store.artifacts import CHUNK, Artifacts, Swept
from api.store.database import Database
from api.store.migrate import migrate
from api.store.tables import ArtifactRow
from arachne_pool import BadRequest, NotFound

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def artifacts(tmp_path: Path, clock: Clock) -> AsyncIterator[Artifacts]:
    await asyncio.to_thread(migrate, tmp_path / "arachne.db")
    database = Database(tmp_path / "arachne.db")
    yield Artifacts(database, tmp_path / "artifacts", clock=clock)
    await database.close()


def objects(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "artifacts").rglob("*") if path.is_file())


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def test_bytes_come_back_with_all_that_is_known_of_them(artifacts: Artifacts, tmp_path: Path) -> None:
    data = bytes(range(256))
    put = await artifacts.put(data, media_type="image/png", name="a.png", expires_in=60, tenant="t")
    got = await artifacts.get(put.id, "t")

    assert got == put
    assert (got.digest, got.size, got.media_type, got.name) == (sha(data), 256, "image/png", "a.png")
    assert (got.created_at, got.expires_at) == (NOON, NOON + timedelta(seconds=60))
    assert await artifacts.read(put.id, "t") == data
    assert objects(tmp_path) == [sha(data)]


async def test_ids_cannot_be_guessed(artifacts: Artifacts) -> None:
    ids = {(await artifacts.put(b"same", media_type="a/b", expires_in=None)).id for _ in range(5)}

    assert len(ids) == 5
    assert all(one.startswith("art_") and len(one) == 36 for one in ids)


async def test_the_same_bytes_are_kept_once(artifacts: Artifacts, tmp_path: Path) -> None:
    first = await artifacts.put(b"same", media_type="text/plain", expires_in=None, tenant="a")
    second = await artifacts.put(b"same", media_type="text/html", expires_in=None, tenant="b")
    assert objects(tmp_path) == [sha(b"same")]

    await artifacts.delete(first.id, "a")
    assert await artifacts.read(second.id, "b") == b"same"

    await artifacts.delete(second.id, "b")
    assert objects(tmp_path) == []


async def test_an_artifact_is_there_for_its_tenant_alone(artifacts: Artifacts) -> None:
    mine = (await artifacts.put(b"x", media_type="a/b", expires_in=None, tenant="me")).id
    for tenant in ("", "you", "ME"):
        with pytest.raises(NotFound, match=mine):
            await artifacts.get(mine, tenant)
        with pytest.raises(NotFound, match=mine):
            await artifacts.read(mine, tenant)
        with pytest.raises(NotFound, match=mine):
            await artifacts.delete(mine, tenant)

    assert await artifacts.read(mine, "me") == b"x"


@pytest.mark.parametrize(
    "unknown", ["", "art_", "art_" + "0" * 32, "../../etc/passwd", "x" * 10_000, "\0", "'"]
)
async def test_an_unknown_id_is_not_found(artifacts: Artifacts, unknown: str) -> None:
    with pytest.raises(NotFound):
        await artifacts.get(unknown)


async def test_an_artifact_is_gone_the_moment_it_expires(artifacts: Artifacts, clock: Clock) -> None:
    put = await artifacts.put(b"x", media_type="a/b", expires_in=60)
    clock.now = NOON + timedelta(seconds=59.999)
    assert await artifacts.read(put.id) == b"x"

    clock.now = NOON + timedelta(seconds=60)
    with pytest.raises(NotFound):
        await artifacts.get(put.id)


async def test_a_sweep_takes_what_expired_and_nothing_else(
    artifacts: Artifacts, tmp_path: Path, clock: Clock
) -> None:
    old = [await artifacts.put(b"old %d" % i, media_type="a/b", expires_in=60) for i in range(3)]
    kept = await artifacts.put(b"kept", media_type="a/b", expires_in=None)
    later = await artifacts.put(b"later", media_type="a/b", expires_in=61)
    shared = await artifacts.put(b"old 0", media_type="a/b", expires_in=None)
    assert await artifacts.sweep() == Swept(0, 0)

    clock.now = NOON + timedelta(seconds=60)
    assert await artifacts.sweep() == Swept(3, 2)

    for gone in old:
        with pytest.raises(NotFound):
            await artifacts.get(gone.id)
    assert [await artifacts.read(a.id) for a in (kept, later, shared)] == [b"kept", b"later", b"old 0"]
    assert objects(tmp_path) == sorted(map(sha, (b"kept", b"later", b"old 0")))
    assert await artifacts.sweep(NOON + timedelta(seconds=61)) == Swept(1, 1)
    assert await artifacts.sweep(NOON + timedelta(seconds=61)) == Swept(0, 0)


async def test_a_sweep_takes_many_objects(artifacts: Artifacts, tmp_path: Path) -> None:
    for i in range(120):
        await artifacts.put(b"%d" % i, media_type="a/b", expires_in=1 + i % 2)

    assert await artifacts.sweep(NOON + timedelta(seconds=1)) == Swept(60, 60)
    assert len(objects(tmp_path)) == 60


async def test_a_sweep_takes_what_a_process_that_died_left(artifacts: Artifacts, tmp_path: Path) -> None:
    kept = await artifacts.put(b"kept", media_type="a/b", expires_in=None)
    folder = tmp_path / "artifacts" / "ab"
    folder.mkdir()
    (folder / ("ab" * 32)).write_bytes(b"an object whose row never came")
    (folder / ("ac" * 32 + "#1")).write_bytes(b"half of an object, long ago")
    (folder / ("ac" * 32 + "#2")).write_bytes(b"half of an object, just now")
    old = time.time() - 4000
    os.utime(folder / ("ac" * 32 + "#1"), (old, old))

    assert await artifacts.sweep() == Swept(0, 1)
    assert objects(tmp_path) == sorted([kept.digest, "ac" * 32 + "#2"])


async def test_a_sweep_of_nothing_is_quiet(artifacts: Artifacts) -> None:
    assert await artifacts.sweep() == Swept(0, 0)


async def test_a_large_artifact_is_read_in_pieces(artifacts: Artifacts) -> None:
    data = random.Random(1).randbytes(6 * 1024 * 1024 + 17)
    put = await artifacts.put(data, media_type="application/zip", expires_in=None)
    pieces = [piece async for piece in await artifacts.open(put)]

    assert b"".join(pieces) == data
    assert len(pieces) > 5
    assert max(map(len, pieces)) < 8 * CHUNK


async def test_an_empty_artifact_is_one_too(artifacts: Artifacts) -> None:
    put = await artifacts.put(b"", media_type="text/plain", expires_in=None)
    assert await artifacts.read(put.id) == b""


async def test_reading_goes_on_when_the_artifact_is_deleted_meanwhile(artifacts: Artifacts) -> None:
    data = random.Random(2).randbytes(4 * CHUNK)
    put = await artifacts.put(data, media_type="a/b", expires_in=None)
    pieces = await artifacts.open(put)
    await artifacts.delete(put.id)

    assert b"".join([piece async for piece in pieces]) == data
    with pytest.raises(NotFound, match="are gone"):
        await artifacts.open(put)


async def test_bytes_that_were_cut_off_are_written_again(artifacts: Artifacts, tmp_path: Path) -> None:
    digest = sha(b"whole")
    file = tmp_path / "artifacts" / digest[:2] / digest
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")  # as a crash of the machine may leave it
    put = await artifacts.put(b"whole", media_type="a/b", expires_in=None)

    assert await artifacts.read(put.id) == b"whole"


@pytest.mark.parametrize("media_type", ["", "png", "a/b\r\nX: y", "a/b; x", "a/é", "a/" + "b" * 300, "a b/c"])
async def test_a_media_type_that_is_none_is_refused(artifacts: Artifacts, media_type: str) -> None:
    with pytest.raises(BadRequest, match="media_type") as refused:
        await artifacts.put(b"x", media_type=media_type, expires_in=None)
    assert refused.value.field == "media_type"


@pytest.mark.parametrize(
    "media_type", ["image/svg+xml", "text/html; charset=utf-8", 'text/plain;charset="utf-8"; format=flowed']
)
async def test_a_media_type_may_have_parameters(artifacts: Artifacts, media_type: str) -> None:
    put = await artifacts.put(b"x", media_type=media_type, expires_in=None)
    assert (await artifacts.get(put.id)).media_type == media_type


@pytest.mark.parametrize("expires_in", [0, -1, float("nan"), float("inf"), 1e12])
async def test_an_expiry_that_is_none_is_refused(artifacts: Artifacts, expires_in: float) -> None:
    with pytest.raises(BadRequest, match="expires_in"):
        await artifacts.put(b"x", media_type="a/b", expires_in=expires_in)


@pytest.mark.parametrize("name", ["", "x" * 256])
async def test_a_name_that_is_none_is_refused(artifacts: Artifacts, name: str) -> None:
    with pytest.raises(BadRequest, match="name"):
        await artifacts.put(b"x", media_type="a/b", name=name, expires_in=None)


class SweptBetween(Artifacts):
    """A sweep comes at the worst moment: after the object was written, before the row is committed."""

    sweeper: Artifacts | None = None
    at: Callable[[int], bool] = staticmethod(lambda nth: nth == 1)
    nth = 0

    async def _write_object(self, digest: str, data: bytes) -> None:
        await super()._write_object(digest, data)
        self.nth += 1
        if self.sweeper is not None and self.at(self.nth):
            assert (await self.sweeper.sweep()).objects == 1


async def test_a_sweep_between_object_and_row_loses_nothing(artifacts: Artifacts, tmp_path: Path) -> None:
    database = Database(tmp_path / "arachne.db")
    unlucky = SweptBetween(database, tmp_path / "artifacts")
    unlucky.sweeper = artifacts
    put = await unlucky.put(b"precious", media_type="a/b", expires_in=None)
    await database.close()

    assert unlucky.nth == 2
    assert await artifacts.read(put.id) == b"precious"


async def test_a_delete_of_the_same_bytes_between_object_and_row_loses_nothing(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    first = await artifacts.put(b"precious", media_type="a/b", expires_in=None)

    class DeletedBetween(Artifacts):
        nth = 0

        async def _write_object(self, digest: str, data: bytes) -> None:
            await super()._write_object(digest, data)
            self.nth += 1
            if self.nth == 1:
                await artifacts.delete(first.id)
                assert objects(tmp_path) == []

    database = Database(tmp_path / "arachne.db")
    put = await DeletedBetween(database, tmp_path / "artifacts").put(
        b"precious", media_type="a/b", expires_in=None
    )
    await database.close()

    assert await artifacts.read(put.id) == b"precious"


async def test_puts_deletes_and_sweeps_of_the_same_bytes_on_three_loops_lose_nothing(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    """After any mix of them, each row has its object, and after one more sweep each object a row."""
    together = threading.Barrier(2)
    contents = [b"a", b"b"]

    async def putter(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(30):
            put = await artifacts.put(
                rng.choice(contents), media_type="a/b", expires_in=rng.choice([1, None])
            )
            assert (await artifacts.read(put.id)) in contents
            if rng.random() < 0.6:
                await artifacts.delete(put.id)

    def thread(seed: int) -> None:
        together.wait(10)
        asyncio.run(putter(seed))

    putting = asyncio.gather(asyncio.to_thread(thread, 1), asyncio.to_thread(thread, 2))
    sweeps = 0
    while not putting.done():
        await artifacts.sweep(NOON)  # nothing expires: only objects that seem to be nobody's go
        sweeps += 1
    await putting

    database = Database(tmp_path / "arachne.db")
    async with database.read() as session:
        rows = list(await session.scalars(select(ArtifactRow)))
    await database.close()
    assert sweeps > 3
    for row in rows:
        assert sha(await artifacts.read(row.id)) == row.digest
    await artifacts.sweep(NOON)
    assert objects(tmp_path) == sorted({row.digest for row in rows})


def test_no_disk_is_touched_before_the_first_use(tmp_path: Path) -> None:
    artifacts = Artifacts(Database(tmp_path / "x" / "arachne.db"), tmp_path / "x" / "artifacts")

    assert list(tmp_path.iterdir()) == []
    assert repr(artifacts) == f"<artifacts in {tmp_path / 'x' / 'artifacts'}>"
