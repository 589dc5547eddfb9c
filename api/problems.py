"""The one table of problems: each error's status, title and fix, and how it is told (RFC 9457)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from api.fields import FieldError, field_errors
from arachne_pool import ArachneError, NotFound, PoolClosed

log = structlog.stdlib.get_logger("api.problems")

MEDIA_TYPE = "application/problem+json"
LIMIT_OF_ERRORS = 20
CLOSE = {"Connection": "close"}
"""For an answer before the body was read: what is still to come would be taken for the next request."""


@dataclass(frozen=True, slots=True)
class Row:
    status: int
    title: str
    fix: str
    retry_after: float | None = None
    """Seconds to say when the error itself doesn't know better."""


TABLE: dict[str, Row] = {
    # The request
    "bad_request": Row(
        422, "The request is wrong", "Mend the field that the detail names, then send it again."
    ),
    "unauthorized": Row(401, "No valid key", "Send a key that the service knows."),
    "forbidden": Row(403, "Not permitted for this key", "Use a key with the scope that the detail names."),
    "not_found": Row(404, "There is no such thing", "Check the address and the id; it may have expired."),
    "conflict": Row(409, "It contradicts what is there", "Read what is there now, then decide anew."),
    "session_gone": Row(410, "The session has ended", "Open a new session."),
    "quota_exceeded": Row(
        429, "The quota is used up", "Wait as long as Retry-After says, or ask for more.", 60.0
    ),
    "method_not_allowed": Row(405, "Wrong method", "Use one of the methods in the Allow header."),
    "request_too_large": Row(413, "The request is too large", "Send a smaller body."),
    "unsupported_media_type": Row(
        415, "The body is of the wrong kind", "Send JSON, with Content-Type: application/json."
    ),
    # The pool
    "pool_closed": Row(503, "The service is stopping", "Send it again: another process may serve it.", 5.0),
    "queue_full": Row(429, "Too many callers wait", "Send it again after Retry-After, or send less.", 1.0),
    "lease_timeout": Row(
        503,
        "No browser was free in time",
        "Send it again, with a longer timeout, or raise the pool's size.",
        2.0,
    ),
    # The browser
    "launch_failed": Row(
        503, "A browser did not start", "Send it again; if it stays, run arachne doctor.", 5.0
    ),
    "engine_missing": Row(
        503,
        "The browser is not installed",
        "Install it with arachne browsers install, or use another engine.",
    ),
    "browser_lost": Row(502, "The browser ended during the work", "Send it again."),
    "page_crashed": Row(502, "The page crashed", "Send it again; a page that always crashes is too heavy."),
    # The visit
    "blocked_by_policy": Row(
        403, "The address is not permitted", "Have the operator permit it in ARACHNE_EGRESS_ALLOW."
    ),
    "visit_timeout": Row(
        504, "The visit took too long", "Raise timeout, or wait for less (wait_until: domcontentloaded)."
    ),
    "target_failed": Row(
        502, "The site could not be reached or answered wrongly", "See reason; check that the site works."
    ),
    "response_too_large": Row(413, "The site's answer is too large", "Visit something smaller."),
    "script_failed": Row(422, "The script raised an error", "Mend the script; the detail has its error."),
    "selector_not_found": Row(422, "No element fits the selector", "Check the selector against the page."),
    # Visual regression testing
    "shot_unsettled": Row(422, "The page never stood still", "Mask or stop what the detail names."),
    "baseline_invalid": Row(422, "The baseline can't be compared", "Approve a new baseline."),
    # Ourselves
    "arachne_error": Row(500, "The work failed", "Look for request_id in the service's log."),
    "internal_error": Row(
        500, "A fault of the service", "Report it, with request_id: the log has the cause."
    ),
}

_CODE_OF_STATUS = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "request_too_large",
    415: "unsupported_media_type",
    422: "bad_request",
    429: "quota_exceeded",
}


class Problem(BaseModel):
    """What went wrong, by RFC 9457."""

    type: str = Field(description="Where this kind is explained.", examples=["/problems/lease_timeout"])
    title: str = Field(description="The kind, in words.")
    status: int = Field(description="The answer's status.")
    detail: str = Field(description="What went wrong this time.")
    code: str = Field(description="The kind, for programs: stable.", examples=["lease_timeout"])
    retryable: bool = Field(description="Whether the same request may succeed later.")
    stage: str = Field(description="What was being done.", examples=["queue"])
    request_id: str = Field(description="Also in the X-Request-Id header, and in every line of the log.")
    instance: str = Field(description="The path that was asked for.")
    field: str | None = Field(default=None, description="The field that is wrong.")
    reason: str | None = Field(default=None, description="target_failed: dns, refused, reset, tls, ...")
    rule: str | None = Field(default=None, description="blocked_by_policy: the rule that forbids it.")
    errors: list[FieldError] | None = Field(default=None, description="All that is wrong with the request.")


class Explanation(BaseModel):
    """A kind of problem."""

    type: str
    code: str
    status: int
    title: str
    fix: str


def row_of(error: ArachneError) -> Row:
    """The error's row, or that of the nearest class above it."""
    codes = (kind.code for kind in type(error).__mro__ if issubclass(kind, ArachneError))
    return next(TABLE[code] for code in codes if code in TABLE)


def problem(
    scope: Mapping[str, Any],
    code: str,
    detail: str,
    *,
    row: Row | None = None,
    status: int | None = None,
    retryable: bool = False,
    stage: str = "request",
    retry_after: float | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> JSONResponse:
    """The answer for a problem. ``scope`` is the request's; ``more`` are members of :class:`Problem`."""
    row = row or TABLE[code]
    state = scope.setdefault("state", {}) if isinstance(scope, dict) else {}
    state["problem"] = code  # for the access log
    body = Problem(
        type=f"/problems/{code}",
        title=row.title,
        status=status or row.status,
        detail=detail,
        code=code,
        retryable=retryable,
        stage=stage,
        request_id=state.get("request_id", ""),
        instance=str(scope.get("path", "")),
        **{name: value for name, value in more.items() if value},
    )
    told = dict(headers or {})
    seconds = retry_after if retry_after is not None else row.retry_after
    if seconds is not None:
        told["Retry-After"] = str(max(1, math.ceil(seconds)))
    return JSONResponse(body.model_dump(exclude_none=True), body.status, told, media_type=MEDIA_TYPE)


def of_error(scope: Mapping[str, Any], error: ArachneError) -> JSONResponse:
    return problem(
        scope,
        error.code,
        error.message,
        row=row_of(error),
        retryable=error.retryable,
        stage=error.stage,
        retry_after=error.retry_after,
        field=getattr(error, "field", None),
        reason=getattr(error, "reason", None),
        rule=getattr(error, "rule", None),
    )


def of_unexpected(scope: Mapping[str, Any], error: Exception) -> JSONResponse:
    """A fault of ours. Its text stays in the log: it may hold what is nobody's business."""
    log.error("unexpected error", path=scope.get("path"), exc_info=error)
    detail = "something went wrong inside the service; its log has the cause under request_id"
    return problem(scope, "internal_error", detail)


def stopped(scope: Mapping[str, Any]) -> JSONResponse:
    """For a request that was cut off because the service ends."""
    return of_error(scope, PoolClosed("the service stopped before the work was done"))


def too_large(scope: Mapping[str, Any], limit: int) -> JSONResponse:
    return problem(scope, "request_too_large", too_large_detail(limit), headers=CLOSE)


def too_large_detail(limit: int) -> str:
    return f"the body is larger than {limit} bytes, the limit"


def of_validation(request: Request, error: RequestValidationError) -> JSONResponse:
    route = request.scope.get("route")
    body = getattr(route, "body_field", None)
    model = body.field_info.annotation if body is not None else None
    found = error.errors()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    json = kind == "application/json" or kind.endswith("+json")
    if any(tuple(one["loc"]) == ("body",) and one["type"] != "missing" for one in found) and not json:
        return problem(
            request.scope, "unsupported_media_type", f"the body is {kind or 'of no kind'}: JSON is taken"
        )
    errors = field_errors(found[:LIMIT_OF_ERRORS], model)
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return problem(request.scope, "bad_request", f"{errors[0]}{others}", field=errors[0].field, errors=errors)


def of_http(request: Request, error: HTTPException) -> JSONResponse:
    """Starlette's and FastAPI's own: no such path, wrong method, too large, and kin."""
    status = error.status_code
    code = _CODE_OF_STATUS.get(status, "arachne_error" if status >= 500 else "bad_request")
    detail = str(error.detail)
    if status == 404 and detail == "Not Found":
        detail = f"there is nothing at {request.scope['path']}: see /docs for what there is"
    elif status == 400 and isinstance(error.__cause__, UnicodeDecodeError):
        status, detail = 422, "the body is not JSON: it is not in UTF-8"
    elif status == 405 and detail == "Method Not Allowed":
        detail = f"{request.method} is not possible at {request.scope['path']}"
    return problem(request.scope, code, detail, status=status, headers=error.headers)


def install(app: FastAPI) -> None:
    """Have every error of the app told as a problem; the unexpected ones are caught in middleware.py."""

    async def arachne(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ArachneError)
        return of_error(request.scope, error)

    async def validation(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return of_validation(request, error)

    async def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return of_http(request, error)

    app.add_exception_handler(ArachneError, arachne)
    app.add_exception_handler(RequestValidationError, validation)
    app.add_exception_handler(HTTPException, http)
    app.include_router(router)
    _tell_media_type(app)


def _tell_media_type(app: FastAPI) -> None:
    """FastAPI files the schema of every documented answer under application/json: put ours where it is."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()  # cached by FastAPI, so what was put right stays so
        for path in document["paths"].values():
            for operation in path.values():
                for answer in operation["responses"].values():
                    content = answer.get("content", {})
                    if "Problem" in str(
                        content.get("application/json", {}).get("schema", {}).get("$ref", "")
                    ):
                        content[MEDIA_TYPE] = content.pop("application/json")
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to change the document


def responses(*errors: type[ArachneError]) -> dict[int | str, dict[str, Any]]:
    """For a route's ``responses``: the problems it may answer with, besides what every route may."""
    codes = ["bad_request", *(error.code for error in errors), "internal_error"]
    told: dict[int | str, dict[str, Any]] = {}
    for code in dict.fromkeys(codes):
        row = TABLE[code]
        line = f"`{code}`: {row.title.lower()}"
        if row.status in told:
            told[row.status]["description"] += f"; {line}"
        else:
            told[row.status] = {"description": line, "model": Problem}
    return dict(sorted(told.items(), key=lambda item: str(item[0])))


router = APIRouter(prefix="/problems", tags=["problems"])


def _explanation(code: str) -> Explanation:
    row = TABLE[code]
    return Explanation(type=f"/problems/{code}", code=code, status=row.status, title=row.title, fix=row.fix)


@router.get("")
async def list_problems() -> list[Explanation]:
    """Every kind of problem, with what to do about it."""
    return [_explanation(code) for code in TABLE]


@router.get("/{code}", responses={404: {"model": Problem, "description": "`not_found`"}})
async def explain_problem(code: str) -> Explanation:
    """One kind of problem: where the `type` of a problem document leads."""
    if code not in TABLE:
        raise NotFound(f"there is no problem {code!r}: see /problems for all")
    return _explanation(code)
