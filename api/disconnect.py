"""Work ends when the client who asked for it has left."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog
from fastapi import FastAPI, Request, Response
from starlette.types import Receive

from api.tasks import ended

log = structlog.stdlib.get_logger("api.disconnect")
T = TypeVar("T")

CLIENT_GONE = 499
"""The status in the log of a request whose client left before the answer, as nginx has it."""


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


async def run_until_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The work's result; or, when the client leaves before, ClientGone once the work has cleaned up.

    The request's body must have been read: what comes after it is the client's leaving. When the caller
    is cancelled the work is cancelled with it, and its clean-up waited for as well.
    """
    job = asyncio.create_task(work, name="work of a request")
    watch = asyncio.create_task(_left(request.receive), name="watch for a client's leaving")
    try:
        await asyncio.wait((job, watch), return_when=asyncio.FIRST_COMPLETED)
        if job.done():
            return job.result()
        watch.result()
    finally:
        try:
            await _end(job)
        finally:
            await _end(watch)
    raise ClientGone("the client left before the answer")


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end. An error that comes of it is only logged: nobody asks for it."""
    working = not task.done()
    task.cancel()
    try:
        await ended(task)
    finally:
        if not task.cancelled() and (error := task.exception()) is not None and working:
            log.debug("an error while the work of a client who left was ended", exc_info=error)


def install(app: FastAPI) -> None:
    """Log and count who left; ``app.state.clients_gone`` is the number since the start."""
    app.state.clients_gone = 0

    async def gone(request: Request, _error: Exception) -> Response:
        request.app.state.clients_gone += 1
        log.info("client gone", method=request.method, path=request.url.path)
        return Response(status_code=CLIENT_GONE)  # for the log alone: nobody reads it

    app.add_exception_handler(ClientGone, gone)
