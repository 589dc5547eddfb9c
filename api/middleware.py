"""What every request goes through: its id, its line in the log, the limit of its body, faults caught."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from typing import Any

import structlog
from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api import problems

log = structlog.stdlib.get_logger("api.access")

BODY_LIMIT = 10 * 1024 * 1024
"""Bytes of a request's body."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_OFTEN = ("/livez", "/readyz", "/ui/pool", "/static/")


class RequestContext:
    """Outermost: gives the request its id, binds it to the log, answers what nobody caught, logs the line."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _ID.fullmatch(given) else uuid.uuid4().hex
        state: dict[str, Any] = scope.setdefault("state", {})
        state["request_id"] = request_id
        answer = _Answer(send, request_id)
        since = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self.app(scope, receive, answer)
            except asyncio.CancelledError:
                # The server ends what ran longer than the grace of a stop: say so rather than hang up.
                await answer.instead(problems.stopped(scope), scope, receive)
                raise
            except Exception as error:
                response = problems.of_unexpected(scope, error)
                if not await answer.instead(response, scope, receive):
                    raise  # half an answer is out: only closing the connection tells the client
            finally:
                _log_line(scope, answer.status, time.perf_counter() - since)


class _Answer:
    """Passes the answer on, with the id in its headers, and remembers its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)["X-Request-Id"] = self._request_id
        await self._send(message)

    async def instead(self, response: ASGIApp, scope: Scope, receive: Receive) -> bool:
        """Answer with this if no answer has begun; says whether it did."""
        if self.status is not None:
            return False
        await response(scope, receive, self)
        return True


def _log_line(scope: Scope, status: int | None, seconds: float) -> None:
    path: str = scope["path"]
    often = status is not None and status < 400 and path.startswith(_OFTEN)
    fault = status is None or (status >= 500 and path != "/readyz")  # which says no, and rightly
    client = scope.get("client")
    code = scope["state"].get("problem")
    write = log.debug if often else log.warning if fault else log.info
    write(
        "request",
        method=scope["method"],
        path=path[:500],
        status=status,
        ms=round(seconds * 1000, 1),
        client=client[0] if client else None,
        **({"code": code} if code else {}),
    )


class BodyLimit:
    """Refuses bodies above a limit: by their header at once, and by the bytes seen in any case."""

    def __init__(self, app: ASGIApp, limit: int = BODY_LIMIT) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isascii() and declared.isdecimal() and int(declared[:20]) > self.limit:
            await problems.too_large(scope, self.limit)(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self.limit:
                    # The one exception that FastAPI lets pass while it reads a body.
                    raise HTTPException(413, problems.too_large_detail(self.limit), problems.CLOSE)
            return message

        await self.app(scope, counted, send)
