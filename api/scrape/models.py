"""What a scrape is asked for and what it answers."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from api.scrape.links import Link
from api.scrape.metadata import Metadata
from arachne_pool import Engine

Format = Literal["html", "text", "markdown", "links", "metadata", "screenshot"]
FORMATS: tuple[Format, ...] = ("html", "text", "markdown", "links", "metadata", "screenshot")
WaitUntil = Literal["settled", "load", "domcontentloaded", "networkidle", "commit"]


class Viewport(BaseModel):
    """The window's inside, in CSS pixels."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int = Field(default=1280, ge=1, le=10_000)
    height: int = Field(default=720, ge=1, le=10_000)


class ScrapeRequest(BaseModel):
    """One page to read."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        json_schema_extra={
            "examples": [
                {"url": "http://127.0.0.1:8001/article"},
                {
                    "url": "http://127.0.0.1:8001/article",
                    "formats": ["html", "links", "screenshot"],
                    "wait_until": "load",
                    "timeout": 20,
                    "viewport": {"width": 1024, "height": 768},
                },
            ]
        },
    )

    url: str = Field(
        description="The page's address: http or https, at most 8 KiB, without a user name or password.",
        examples=["http://127.0.0.1:8001/article"],
    )
    formats: set[Format] = Field(
        default={"markdown", "metadata"},
        min_length=1,
        description="What to give back: html (as rendered), text, markdown, links, metadata, screenshot.",
        examples=[["markdown", "metadata"]],
    )
    engine: Engine = Field(default="chromium", description="Which kind of browser visits the page.")
    wait_until: WaitUntil = Field(
        default="settled",
        description="When the page counts as there. settled: loaded, and nothing of note changes any more.",
    )
    timeout: float = Field(
        default=60.0,
        gt=0,
        description="Seconds for all of it: waiting for a browser, the visit, the reading. "
        "At most ARACHNE_MAX_TIMEOUT.",
        examples=[60],
    )
    viewport: Viewport = Field(default=Viewport(), description="The window's inside, in CSS pixels.")


class Timing(BaseModel):
    """Where the seconds went."""

    queue: float = Field(default=0.0, description="Waiting for a browser.")
    navigate: float = Field(default=0.0, description="Until the answer began.")
    wait: float = Field(default=0.0, description="Until the page was there.")
    read: float = Field(default=0.0, description="Taking its content and picture.")
    extract: float = Field(default=0.0, description="Making text, Markdown, links and metadata of it.")
    total: float = Field(default=0.0, description="All of it.")


class ScrapeAnswer(BaseModel):
    """What came of a visit. Formats that were not asked for are left out."""

    url: str = Field(description="The address that was asked for.")
    final_url: str = Field(description="The document's address when it was read.")
    status: int | None = Field(description="The site's HTTP status; an error page is a result as well.")
    kind: str = Field(description="What came: html, json, text, xml, pdf, image, download, empty or other.")
    media_type: str = Field(default="", description="The Content-Type that the site gave.")
    engine: Engine
    html: str | None = Field(default=None, description="The document as rendered.")
    text: str | None = Field(default=None, description="What a reader sees, as plain text.")
    markdown: str | None = Field(default=None, description="What a reader sees, as Markdown.")
    links: list[Link] | None = Field(default=None, description="The document's links, absolute, in order.")
    metadata: Metadata | None = Field(default=None, description="Title, description, language, ...")
    screenshot: str | None = Field(default=None, description="A PNG of the window's inside, in base64.")
    headers: dict[str, str] = Field(description="The answer's headers.")
    redirects: list[str] = Field(description="The addresses that led on, in order.")
    timing: Timing = Field(description="Where the seconds went.")
    partial: bool = Field(description="Whether something is missing, as when a wait ran into its limit.")
    blocked: list[str] = Field(description="Addresses that the page asked for and policy forbids.")
    attempts: int = Field(description="How many visits it took.")
    warnings: list[str] = Field(description="What a reader of the result should know.")
    request_id: str = Field(description="The request's id, as in the log.")
    settled: str = Field(description="What the wait ended on.")
