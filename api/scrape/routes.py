"""Scraping over HTTP."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api import problems
from api.disconnect import run_until_disconnect
from api.scrape.models import ScrapeAnswer, ScrapeRequest
from api.scrape.work import scrape
from api.settings import Settings
from arachne_pool import (
    BadRequest,
    BlockedByPolicy,
    BrowserLost,
    EngineMissing,
    LaunchFailed,
    LeaseTimeout,
    PageCrashed,
    PoolClosed,
    QueueFull,
    ResponseTooLarge,
    TargetFailed,
    VisitTimeout,
)

router = APIRouter(tags=["scrape"])


@router.post(
    "/v1/scrape",
    response_model=ScrapeAnswer,
    responses=problems.responses(
        BlockedByPolicy,
        ResponseTooLarge,
        QueueFull,
        TargetFailed,
        BrowserLost,
        PageCrashed,
        PoolClosed,
        LeaseTimeout,
        LaunchFailed,
        EngineMissing,
        VisitTimeout,
    ),
)
async def scrape_page(request: Request, order: ScrapeRequest) -> Response:
    """Visit one page and give back what was asked for.

    An error page of the site is a result: see `status`. Formats that were not asked for are left out;
    `null` stands for one that this kind of answer does not have, and `warnings` says so. When the client
    leaves, the visit ends.
    """
    state = request.app.state
    settings: Settings = state.settings
    if order.timeout > settings.max_timeout:
        raise BadRequest(
            f"timeout: {order.timeout:g} is longer than {settings.max_timeout:g} seconds, the longest that "
            "this service permits (ARACHNE_MAX_TIMEOUT): give less",
            field="timeout",
        )
    return await run_until_disconnect(request, _answer(request, order))


async def _answer(request: Request, order: ScrapeRequest) -> Response:
    state = request.app.state
    answer = await scrape(
        state.pool,
        order,
        policy=state.egress,
        request_id=request.state.request_id,
        workers=state.workers,
        go=state.go,
    )
    # Pages and pictures are large: their JSON is made in a thread too, and only of what was set.
    body = await state.workers.run(answer.model_dump_json, exclude_unset=True)
    return Response(body, media_type="application/json")
