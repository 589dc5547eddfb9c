"""Artifacts: bytes kept under their digest, with rows that say whose they are and until when."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import obstore
from obstore.store import LocalStore
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from api.store.database import Database
from api.store.tables import ArtifactRow, utc_now
from arachne_pool import BadRequest, NotFound

CHUNK = 256 * 1024
"""Bytes of a stream's pieces."""
SWEEP_BATCH = 50
"""Objects that one transaction of a sweep may remove: others who write wait for so long."""
LEFTOVER_AGE = 3600.0
"""Seconds after which a half-written file is one of a process that died."""

# A type with its parameters, and nothing that could break out of a header.
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(\s*;\s*[\w.+-]+=(\"[\w .:+/-]*\"|[\w.:+/-]+))*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Artifact:
    """What is known of stored bytes; ``digest`` is their SHA-256 in hex."""

    id: str
    digest: str
    media_type: str
    size: int
    created_at: datetime
    expires_at: datetime | None
    tenant: str
    name: str | None


@dataclass(frozen=True, slots=True)
class Swept:
    """How many rows and objects a sweep removed."""

    rows: int
    objects: int


class Artifacts:
    """Keeps artifacts in one folder and the database. Usable from any loop; touches no disk when made.

    The order that loses nothing: ``put`` writes the object, then commits the row; whoever removes,
    commits the row's end, then removes the object. In between, one may remove what the other counts on.
    So both look once more inside a transaction that writes, and of these there is one at a time:
    an object is removed only while no row points to it, and a row comes only while its object is there.
    A crash at any point leaves at most an object without a row, which the next sweep removes.
    """

    def __init__(
        self, database: Database, root: str | Path, *, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._database = database
        self._root = Path(root).absolute()
        self._clock = clock
        self._made: LocalStore | None = None

    def __repr__(self) -> str:
        return f"<artifacts in {self._root}>"

    async def put(
        self,
        data: bytes,
        *,
        media_type: str,
        name: str | None = None,
        expires_in: float | None,
        tenant: str = "",
    ) -> Artifact:
        """Keep these bytes for ``expires_in`` seconds (None: until they are deleted).

        When it returns, they survive a crash of the machine. BadRequest names a field that is wrong.
        """
        if len(media_type) > 255 or not _MEDIA_TYPE.fullmatch(media_type):
            raise BadRequest(f"media_type is {media_type!r}: give one such as image/png", field="media_type")
        if name is not None and not 0 < len(name) <= 255:
            raise BadRequest(f"name has {len(name)} characters: give 1 to 255", field="name")
        if expires_in is not None and not 0 < expires_in < 1e10:
            raise BadRequest(f"expires_in is {expires_in}: give seconds above 0, or none", field="expires_in")
        digest = await asyncio.to_thread(_digest, data)
        await self._write_object(digest, data)
        now = self._clock()
        row = ArtifactRow(
            id=f"art_{secrets.token_hex(16)}",
            digest=digest,
            media_type=media_type,
            size=len(data),
            created_at=now,
            expires_at=None if expires_in is None else now + timedelta(seconds=expires_in),
            tenant=tenant,
            name=name,
        )
        async with self._database.write() as session:
            # A sweep may have removed it since. It can't any more: it needs this transaction's place.
            await self._write_object(digest, data)
            session.add(row)
        return _artifact(row)

    async def get(self, artifact_id: str, tenant: str = "") -> Artifact:
        """What is known of an artifact. NotFound when there is none, it expired, or it is another's."""
        async with self._database.read() as session:
            row = await session.get(ArtifactRow, artifact_id)
        if row is None or row.tenant != tenant or self._is_expired(row):
            raise NotFound(f"there is no artifact {artifact_id!r}, or not any more: artifacts expire")
        return _artifact(row)

    async def open(self, artifact: Artifact) -> AsyncIterator[bytes]:
        """The bytes, in pieces. NotFound, before the first piece, when they are gone."""
        store = await self._store()
        try:
            found = await obstore.get_async(store, _key(artifact.digest))
        except FileNotFoundError as error:
            raise NotFound(f"the bytes of artifact {artifact.id!r} are gone from {self._root}") from error
        return _pieces(found)

    async def read(self, artifact_id: str, tenant: str = "") -> bytes:
        """All the bytes of an artifact. NotFound as in ``get`` and ``open``."""
        return b"".join([piece async for piece in await self.open(await self.get(artifact_id, tenant))])

    async def delete(self, artifact_id: str, tenant: str = "") -> None:
        """Remove an artifact, and its bytes if they are nobody else's. NotFound as in ``get``."""
        digest = (await self.get(artifact_id, tenant)).digest
        async with self._database.write() as session:
            await session.execute(delete(ArtifactRow).where(ArtifactRow.id == artifact_id))
        await self._remove_unused([digest])

    async def sweep(self, now: datetime | None = None) -> Swept:
        """Remove the rows that expired by ``now``, then the objects and half-written files of nobody."""
        moment = now or self._clock()
        async with self._database.write() as session:
            gone = await session.execute(
                delete(ArtifactRow).where(ArtifactRow.expires_at <= moment).returning(ArtifactRow.id)
            )
            rows = len(gone.all())
        objects = 0
        async for listed in obstore.list(await self._store(), chunk_size=SWEEP_BATCH):
            digests = [meta["path"].rpartition("/")[2] for meta in listed]
            # Looked up without the right to write first: most objects are somebody's.
            async with self._database.read() as session:
                unused = await _unused(session, digests)
            if unused:
                objects += await self._remove_unused(unused)
        await asyncio.to_thread(_remove_leftovers, self._root)
        return Swept(rows, objects)

    def _is_expired(self, row: ArtifactRow) -> bool:
        return row.expires_at is not None and row.expires_at <= self._clock()

    async def _store(self) -> LocalStore:
        if self._made is None:
            # Two loops may both make one: they are alike.
            self._made = await asyncio.to_thread(_local_store, self._root)
        return self._made

    async def _write_object(self, digest: str, data: bytes) -> None:
        """See to it that the object is there, whole and on the disk."""
        store, key = await self._store(), _key(digest)
        try:
            whole = (await obstore.head_async(store, key))["size"] == len(data)
        except FileNotFoundError:
            whole = False
        if not whole:
            await obstore.put_async(store, key, data, use_multipart=False)
        # Also when it was there: whoever wrote it may not have come as far yet.
        await asyncio.to_thread(_sync, self._root, key)

    async def _remove_unused(self, digests: Sequence[str]) -> int:
        """Remove those objects that no row points to, and say how many."""
        store, removed = await self._store(), 0
        async with self._database.write() as session:
            for digest in await _unused(session, digests):
                try:
                    await obstore.delete_async(store, _key(digest))
                    removed += 1
                except FileNotFoundError:
                    # Another one that removes was first.
                    continue
        return removed


async def _unused(session: AsyncSession, digests: Collection[str]) -> list[str]:
    used = await session.scalars(select(ArtifactRow.digest).where(ArtifactRow.digest.in_(digests)).distinct())
    return sorted(set(digests) - set(used))


async def _pieces(found: obstore.GetResult) -> AsyncIterator[bytes]:
    async for piece in found.stream(min_chunk_size=CHUNK):
        yield bytes(piece)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _key(digest: str) -> str:
    return f"{digest[:2]}/{digest}"


def _local_store(root: Path) -> LocalStore:
    # Pages and screenshots may be private.
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return LocalStore(root)


def _sync(root: Path, key: str) -> None:
    """Make a file and its place in the folders last: the store itself leaves that to the kernel."""
    file = root / key
    for path in (file, file.parent, root):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            # A sweep removed it just now. The look inside the transaction will find that.
            return
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_leftovers(root: Path) -> None:
    """Remove what a process that died in a put left: the store writes to `<name>#<number>` first."""
    now = utc_now().timestamp()
    for file in root.glob("*/*#*"):
        try:
            if now - file.stat().st_mtime > LEFTOVER_AGE:
                file.unlink()
        except FileNotFoundError:
            # It was no leftover: a put has just given it its name.
            continue


def _artifact(row: ArtifactRow) -> Artifact:
    return Artifact(
        id=row.id,
        digest=row.digest,
        media_type=row.media_type,
        size=row.size,
        created_at=row.created_at,
        expires_at=row.expires_at,
        tenant=row.tenant,
        name=row.name,
    )
