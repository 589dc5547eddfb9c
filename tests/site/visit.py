"""A plain HTTP client: what tests use to see what the site, or a service, really sends."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.site.server import Site


@dataclass(frozen=True)
class Got:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def kind(self) -> str:
        return self.headers.get("Content-Type", "")


def get(site: Site, path: str, *, method: str = "GET", body: str = "", **headers: str) -> Got:
    """The answer to one request on a connection of its own."""
    connection = http.client.HTTPConnection(site.host_port, timeout=20)
    try:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        return Got(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def connect(site: Site) -> socket.socket:
    host, _, port = site.host_port.partition(":")
    return socket.create_connection((host, int(port)), timeout=5)


def ask(site: Site, path: str) -> socket.socket:
    """A connection over which this path was asked for, and nothing read yet."""
    plug = connect(site)
    plug.sendall(f"GET {path} HTTP/1.1\r\nHost: {site.host_port}\r\n\r\n".encode())
    return plug


def read_all(plug: socket.socket) -> bytes:
    with plug:
        return b"".join(iter(lambda: plug.recv(65536), b""))


def read_until(plug: socket.socket, end: bytes) -> bytes:
    """Everything up to and with ``end``, and what came along with it."""
    got = b""
    while end not in got:
        part = plug.recv(65536)
        assert part, f"closed before {end!r}; got {got[-200:]!r}"
        got += part
    return got


def eventually(true: Callable[[], bool]) -> None:
    """Wait until it is true, for 5 seconds at most."""
    deadline = time.monotonic() + 5
    while not true():
        assert time.monotonic() < deadline, "did not come true in 5 s"
        time.sleep(0.002)
