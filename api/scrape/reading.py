"""What was asked for, read from a visit, whatever kind of answer it brought. For a worker thread."""

from __future__ import annotations

import base64
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from api.scrape.extract import extract
from api.scrape.plain import as_markdown, decode
from api.scrape.visit import Visit

TEXTUAL = frozenset({"json", "text", "xml"})
_EMPTY: dict[str, Any] = {"html": "", "text": "", "markdown": "", "links": []}


@dataclass(frozen=True, slots=True)
class Reading:
    """``values``: each format that was asked for; None is one that this kind of answer does not have."""

    values: dict[str, Any]
    warnings: list[str] = field(default_factory=list)


def read(visit: Visit, formats: AbstractSet[str]) -> Reading:
    """Give each format of the visit's answer."""
    have = {**_document(visit, frozenset(formats)), "screenshot": _base64(visit.screenshot)}
    values = {name: have.get(name) for name in sorted(formats)}
    missing = [name for name, value in values.items() if value is None]
    warnings = [f"an answer of kind {visit.kind} has no {' and no '.join(missing)}"] if missing else []
    if metadata := values.get("metadata"):
        warnings += metadata.warnings
    return Reading(values, warnings)


def _document(visit: Visit, formats: frozenset[str]) -> dict[str, Any]:
    if visit.kind == "empty":
        return _EMPTY
    if visit.kind in TEXTUAL and visit.body is not None:
        text = decode(visit.body, visit.headers.get("content-type", ""))
        return {"text": text, "markdown": as_markdown(text, visit.kind, visit.media_type), "links": []}
    if visit.kind != "html":
        return {}
    found = extract(visit.snapshot or "", visit.final_url, formats)
    return {
        "html": visit.html,
        "text": found.text,
        "markdown": found.markdown,
        "links": found.links,
        "metadata": found.metadata,
    }


def _base64(picture: bytes | None) -> str | None:
    return None if picture is None else base64.b64encode(picture).decode("ascii")
