"""The pool over HTTP: what runs, what is lent, who waits."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from api import problems

router = APIRouter(tags=["pool"])


class BrowserAnswer(BaseModel):
    """One browser. Ages are seconds."""

    id: str
    engine: str
    state: str = Field(description="launching, ready, draining, closing or closed.")
    reason: str | None = Field(description="Why it was retired; null while it lives.")
    leases: int = Field(description="Sessions that are lent now.")
    served: int = Field(description="Leases since its launch.")
    age: float = Field(description="Seconds since its launch began.")
    idle: float | None = Field(description="Seconds without a lease; null while it has one.")
    pid: int | None
    version: str
    proven: float | None = Field(description="Seconds since it last proved that it works.")


class WorkersAnswer(BaseModel):
    """The threads that parse and convert."""

    threads: int
    busy: int
    stuck: int = Field(description="Busy ones whose caller gave up.")
    waiting: int = Field(description="Work that no thread has begun.")


class PoolAnswer(BaseModel):
    """The pool at this moment."""

    started: bool
    accepting: bool = Field(description="False once the service is stopping.")
    browsers: list[BrowserAnswer]
    leased: int = Field(description="Sessions that are lent now.")
    waiting: int = Field(description="Callers that wait for a session.")
    capacity: int = Field(description="Sessions that may be lent at a time.")
    retired: dict[str, int] = Field(description="Browsers retired since the start, by reason.")
    leases_total: int = Field(description="Leases since the start.")
    last_tick: float | None = Field(description="Seconds since the pool last looked after itself.")
    last_error: str | None = Field(description="The last thing that went wrong with a browser.")
    workers: WorkersAnswer
    clients_gone: int = Field(description="Requests since the start whose client left before the answer.")


@router.get("/v1/pool", responses=problems.responses())
async def read_pool(request: Request) -> PoolAnswer:
    """What the pool has and does at this moment."""
    state = request.app.state
    return PoolAnswer.model_validate(
        {
            **asdict(state.pool.status()),
            "workers": asdict(state.workers.status()),
            "clients_gone": state.clients_gone,
        }
    )
