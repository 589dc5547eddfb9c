"""Artifacts over HTTP: their bytes, in such a way that nothing in them can act in our name."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from api.store.artifacts import Artifact, Artifacts
from api.store.tables import utc_now

YEAR = 365 * 24 * 3600

# What a browser only shows. All else (HTML, SVG, XML, and what nobody thought of) may hold scripts, and
# these would run with our origin's rights.
_PASSIVE = re.compile(
    r"image/(png|jpeg|gif|webp|avif)|audio/.*|video/.*|text/(plain|csv|markdown)|application/(json|pdf)"
)
_SANDBOX = (
    "sandbox; default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_SUFFIXES = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/svg+xml": ".svg",
    "image/webp": ".webp",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
}

router = APIRouter(tags=["artifacts"])


@router.get(
    "/v1/artifacts/{artifact_id}",
    response_class=Response,
    responses={
        200: {"description": "The bytes, with the media type they were stored with."},
        304: {"description": "The caller has them already."},
    },
)
async def read_artifact(artifact_id: str, request: Request) -> Response:
    """The bytes of an artifact. They never change: a cache may keep them until they expire."""
    artifacts: Artifacts = request.app.state.artifacts
    artifact = await artifacts.get(artifact_id, getattr(request.state, "tenant", ""))
    headers = _headers(artifact, utc_now())
    if _has_it(request.headers.get("if-none-match", ""), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    body = await artifacts.open(artifact)
    # Set as headers and not by `media_type`, which adds a charset of its own to text.
    headers |= {"Content-Type": artifact.media_type, "Content-Length": str(artifact.size)}
    return StreamingResponse(body, headers=headers)


def _headers(artifact: Artifact, now: datetime) -> dict[str, str]:
    left = YEAR if artifact.expires_at is None else int((artifact.expires_at - now).total_seconds())
    headers = {
        "ETag": f'"{artifact.digest}"',
        "Cache-Control": f"private, max-age={max(0, min(YEAR, left))}, immutable",
        "Content-Disposition": _disposition(artifact),
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
    }
    if not _PASSIVE.fullmatch(_essence(artifact)):
        headers["Content-Security-Policy"] = _SANDBOX
    return headers


def _essence(artifact: Artifact) -> str:
    return artifact.media_type.partition(";")[0].strip().lower()


def _has_it(if_none_match: str, etag: str) -> bool:
    given = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in given or "*" in given


def _disposition(artifact: Artifact) -> str:
    """A file name for everybody: plain ASCII, and the real one (RFC 5987) for those who read it."""
    name = _safe_name(artifact.name or "") or artifact.id + _SUFFIXES.get(_essence(artifact), "")
    plain = re.sub(r"[^A-Za-z0-9 ._()-]", "_", name)
    return f"inline; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _safe_name(name: str) -> str:
    """A name without a path, and without what is not seen: control and direction characters."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(c for c in last if c.isprintable()).strip(" .")[:150]
