"""Brings the database to the newest revision: once, however many threads and processes ask."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection

from api.store.lock import file_lock
from api.store.sqlite import database_file, open_engine, sqlite_url
from arachne_pool import Conflict

SCRIPTS = Path(__file__).parent / "migrations"
LOCK_TIMEOUT = 300.0
"""Seconds to wait for another process that migrates the same database."""

# Alembic keeps the migration that runs in module globals: one at a time in a process.
_one_at_a_time = threading.Lock()


def migrate(where: str | Path, *, scripts: Path = SCRIPTS) -> None:
    """Upgrade the database at this path or address to the newest revision, making it where there is none.

    Blocks: call it in a worker thread. All steps happen in one transaction, or none does. Raises
    Conflict when the database is newer than this code.
    """
    url = sqlite_url(where)
    file = database_file(url)
    file.parent.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time, file_lock(file.with_name(file.name + ".migrate.lock"), timeout=LOCK_TIMEOUT):
        asyncio.run(_upgrade(url, scripts))


async def _upgrade(url: URL, folder: Path) -> None:
    # Foreign keys are off: a table that is made anew to change a column drops the old one, and that
    # would delete the rows which point to it. They are checked before the commit instead.
    engine = open_engine(url, begin="IMMEDIATE", connections=1, pragmas=("foreign_keys = OFF",))
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_upgrade_in, url, folder)
    finally:
        await engine.dispose()


def _upgrade_in(connection: Connection, url: URL, folder: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    known = {script.revision for script in scripts.walk_revisions()}
    current = MigrationContext.configure(connection).get_current_revision()
    newest = scripts.get_current_head()
    if current is not None and current not in known:
        raise Conflict(
            f"the database {url.database} is at revision {current!r}, which is newer than this code "
            f"(its newest is {newest!r}): start the version of Arachne that wrote it, or set "
            "ARACHNE_DATA_DIR to another folder"
        )
    if current == newest:
        return
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    if broken := connection.exec_driver_sql("PRAGMA foreign_key_check").first():
        raise Conflict(f"the database {url.database}: a row of {broken[0]} points to nothing in {broken[2]}")
