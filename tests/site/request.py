"""One request as it came over the wire."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlsplit


class BadRequest(Exception):
    """The request can't be understood; the site answers 400 with this text."""


@dataclass(frozen=True)
class Request:
    """``target`` is path and query as sent; header names are in lower case, in the order they came."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    @cached_property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @cached_property
    def query(self) -> dict[str, str]:
        """The last value of each name."""
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    @cached_property
    def cookies(self) -> dict[str, str]:
        try:
            return {name: morsel.value for name, morsel in SimpleCookie(self.header("cookie")).items()}
        except CookieError as error:
            raise BadRequest(f"the Cookie header can't be read: {error}") from error

    def header(self, name: str, default: str = "") -> str:
        """All values of this header, joined as HTTP joins them."""
        values = [value for key, value in self.headers if key == name.lower()]
        return ", ".join(values) if values else default

    def number(self, name: str, default: float, *, most: float = float("inf")) -> float:
        """A query field as a number from 0 to ``most``."""
        given = self.query.get(name, "")
        if not given:
            return default
        try:
            number = float(given)
        except ValueError:
            number = -1.0
        if not 0 <= number <= most:  # also false for nan
            raise BadRequest(f"{name} is {given!r}: give a number from 0 to {most:g}")
        return number

    @property
    def keeps_alive(self) -> bool:
        return self.version == "HTTP/1.1" and self.header("connection").lower() != "close"


def parse_head(head: bytes) -> Request:
    """Read the first line and the headers; ``head`` ends before the empty line."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequest(f"not a request line: {first[:100]!r}")
    method, target, version = words
    if not target.startswith("/"):  # a proxy's absolute form
        parts = urlsplit(target)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers: list[tuple[str, str]] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest(f"not a header: {line[:100]!r}")
        headers.append((name.strip().lower(), value.strip()))
    return Request(method, target, version, tuple(headers))
