"""The pages: the pool's, and the API's documentation."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from api.store.tables import utc_now
from api.web.page import POLICY, render
from api.web.view import PoolView, pool_view

# Swagger UI shows a picture that an operation returned by a blob: address. It needs nothing else: this
# version gets by without inline styles and without eval (tests/browser/test_web_pages.py).
DOCS_POLICY = POLICY.replace("img-src 'self' data:", "img-src 'self' data: blob:")

router = APIRouter(include_in_schema=False)


@router.get("/")
def home(request: Request) -> RedirectResponse:
    return RedirectResponse(f"{request.scope.get('root_path', '')}/ui")


@router.get("/ui")
def pool_page(request: Request) -> HTMLResponse:
    return render(request, "pool.html", pool=_view(request))


@router.get("/ui/pool")
def pool_fragment(request: Request) -> HTMLResponse:
    """What the page asks for each second."""
    return render(request, "_pool.html", pool=_view(request))


@router.get("/docs")
def documentation(request: Request) -> HTMLResponse:
    return render(request, "docs.html", policy=DOCS_POLICY, openapi=request.app.openapi_url or "")


def _view(request: Request) -> PoolView:
    pool = request.app.state.pool
    return pool_view(pool.status(), pool.config, utc_now())
