"""Migrations: raced, from an older and a newer database, and in step with the tables."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from api.store.lock import file_lock
from api.store.migrate import SCRIPTS, migrate
from api.store.tables import Base
from arachne_pool import Conflict

HEAD = ScriptDirectory(str(SCRIPTS)).get_current_head()


def query(file: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(file)
    try:
        rows: list[tuple[object, ...]] = connection.execute(sql).fetchall()
        connection.commit()
    finally:
        connection.close()
    return rows


def test_a_new_database_gets_the_newest_revision_and_keeps_its_rows_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "arachne.db"
    migrate(file)
    query(file, "INSERT INTO artifacts VALUES ('a', 'd', 'm', 1, '2027-01-01', NULL, '', NULL)")
    migrate(file)

    assert query(file, "SELECT version_num FROM alembic_version") == [(HEAD,)]
    assert query(file, "SELECT id FROM artifacts") == [("a",)]
    assert query(file, "PRAGMA journal_mode") == [("wal",)]


def test_the_migrated_database_has_the_tables_that_the_code_has(tmp_path: Path) -> None:
    migrate(tmp_path / "arachne.db")
    engine = create_engine(f"sqlite:///{tmp_path / 'arachne.db'}")
    with engine.connect() as connection:
        differences = compare_metadata(
            MigrationContext.configure(connection, opts={"compare_type": True}), Base.metadata
        )
    engine.dispose()

    assert differences == []


def test_there_is_one_line_of_revisions() -> None:
    assert len(ScriptDirectory(str(SCRIPTS)).get_heads()) == 1


def test_eight_threads_that_migrate_at_once_all_succeed(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def race(_: int) -> None:
        together.wait(10)
        migrate(tmp_path / "arachne.db")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(race, range(8)))

    assert query(tmp_path / "arachne.db", "SELECT version_num FROM alembic_version") == [(HEAD,)]


def test_eight_threads_that_migrate_a_database_each_do_not_mix_them_up(tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.db" for i in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(migrate, files))

    for file in files:
        assert query(file, "SELECT version_num FROM alembic_version") == [(HEAD,)]
        assert query(file, "SELECT count(*) FROM artifacts") == [(0,)]


def test_processes_that_migrate_at_once_all_succeed(tmp_path: Path) -> None:
    file = tmp_path / "arachne.db"
    code = "import sys; from api.store.migrate import migrate; sys.stdin.readline(); migrate(sys.argv[1])"
    others = [
        subprocess.Popen([sys.executable, "-c", code, str(file)], stdin=subprocess.PIPE) for _ in range(3)
    ]
    for other in others:
        assert other.stdin is not None
        other.stdin.close()

    assert [other.wait(60) for other in others] == [0, 0, 0]
    assert query(file, "SELECT version_num FROM alembic_version") == [(HEAD,)]


def test_a_migration_waits_while_another_process_migrates(tmp_path: Path) -> None:
    file = tmp_path / "arachne.db"
    with ThreadPoolExecutor(1) as thread:
        with file_lock(tmp_path / "arachne.db.migrate.lock", timeout=5):
            other = thread.submit(migrate, file)
            with pytest.raises(TimeoutError):
                other.result(0.3)
            assert not file.exists()
        other.result(20)

    assert file.exists()


def test_a_newer_database_is_refused_with_both_revisions_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "arachne.db"
    migrate(file)
    query(file, "UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(Conflict) as refused:
        migrate(file)

    assert "'9999'" in str(refused.value)
    assert f"{HEAD!r}" in str(refused.value)
    assert "ARACHNE_DATA_DIR" in str(refused.value)
    assert query(file, "SELECT version_num FROM alembic_version") == [("9999",)]


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    scripts = tmp_path / "migrations"
    (scripts / "versions").mkdir(parents=True)
    for path in ("env.py", "versions/0001_artifacts.py"):
        (scripts / path).write_text((SCRIPTS / path).read_text())
    (scripts / "versions/0002_wrong.py").write_text(
        "from alembic import op\nrevision, down_revision = '0002', '0001'\n"
        "def upgrade(): op.execute('CREATE TABLE half (id)'); op.execute('SELECT * FROM nothing')\n"
    )

    with pytest.raises(Exception, match="nothing"):
        migrate(tmp_path / "arachne.db", scripts=scripts)

    assert query(tmp_path / "arachne.db", "SELECT name FROM sqlite_master") == []


def test_a_migration_that_leaves_a_row_pointing_nowhere_is_undone(tmp_path: Path) -> None:
    scripts = tmp_path / "migrations"
    (scripts / "versions").mkdir(parents=True)
    (scripts / "env.py").write_text((SCRIPTS / "env.py").read_text())
    (scripts / "versions/0001_wrong.py").write_text(
        "from alembic import op\nrevision, down_revision = '0001', None\n"
        "def upgrade():\n"
        "    op.execute('CREATE TABLE parent (id INTEGER PRIMARY KEY)')\n"
        "    op.execute('CREATE TABLE child (id INTEGER REFERENCES parent)')\n"
        "    op.execute('INSERT INTO child VALUES (1)')\n"
    )

    with pytest.raises(Conflict, match="a row of child points to nothing in parent"):
        migrate(tmp_path / "arachne.db", scripts=scripts)

    assert query(tmp_path / "arachne.db", "SELECT name FROM sqlite_master") == []
