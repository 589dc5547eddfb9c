"""Alembic's environment: runs the revisions on the connection that migrate.py has opened."""

from __future__ import annotations

from alembic import context

from api.store.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    # SQLite changes a column by making the table anew.
    render_as_batch=True,
)
# migrate.py holds the one transaction that all revisions run in.
context.run_migrations()
