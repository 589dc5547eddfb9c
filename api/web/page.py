"""How every page is made: its templates, its policy, its place in the navigation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.types import Scope

FOLDER = Path(__file__).parent

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)


@dataclass(frozen=True, slots=True)
class NavItem:
    label: str
    path: str


NAV = (NavItem("Pool", "/ui"), NavItem("API docs", "/docs"))
"""The navigation, in order. A new page is one item here."""

_templates = Environment(
    loader=FileSystemLoader(FOLDER / "templates"),
    autoescape=True,
    auto_reload=False,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(request: Request, template: str, *, policy: str = POLICY, **values: Any) -> HTMLResponse:
    """A page, or a fragment of one. Reads templates from the disk: call it in a plain `def` route."""
    root = request.scope.get("root_path", "")
    path = request.scope["path"].removeprefix(root)
    html = _templates.get_template(template).render(
        root=root, nav=NAV, current=_current(path), version=request.app.state.version, **values
    )
    return HTMLResponse(
        html,
        headers={
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        },
    )


def mount_static(app: FastAPI) -> None:
    """Serve the pages' own files under /static."""
    app.mount("/static", _Static(directory=FOLDER / "static"), name="static")


class _Static(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        # Asked for again each time, and answered by 304: a new version is seen at once.
        response.headers["Cache-Control"] = "no-cache"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


def _current(path: str) -> str:
    """The path of the navigation's item that this page belongs to."""
    return next((item.path for item in NAV if path == item.path or path.startswith(item.path + "/")), "")
