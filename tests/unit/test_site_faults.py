"""The local site misbehaves on the wire exactly as it says, and speaks HTTP otherwise."""

from __future__ import annotations

import gzip
import http.client
import re
import struct
import time
from collections.abc import Iterator

import pytest

from tests.site import Site
from tests.site.visit import ask, connect, get, read_all, read_until


@pytest.fixture(scope="module")
def running_site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def site(running_site: Site) -> Site:
    running_site.reset()
    return running_site


def test_reset_is_a_reset(site: Site) -> None:
    with ask(site, "/reset") as plug, pytest.raises(ConnectionResetError):
        plug.recv(1)
    assert site.aborted("/reset") == 0


@pytest.mark.parametrize(
    ("path", "whole"),
    [("/close", b""), ("/garbage", b"hello\n"), ("/badstatus", b"HTTP/1.1 abc\r\n\r\n")],
)
def test_what_is_not_http(site: Site, path: str, whole: bytes) -> None:
    assert read_all(ask(site, path)) == whole


def test_cut_answers(site: Site) -> None:
    head, _, body = read_all(ask(site, "/short")).partition(b"\r\n\r\n")
    assert b"Content-Length: 1000" in head
    assert (len(body), body[:7]) == (300, b"<p>half")
    with pytest.raises(http.client.IncompleteRead):
        get(site, "/chunkcut")
    cut = get(site, "/gzipcut")
    assert cut.headers["Content-Encoding"] == "gzip"
    with pytest.raises(EOFError):
        gzip.decompress(cut.body)
    assert get(site, "/brotli-lie").headers["Content-Encoding"] == "br"


def test_slow_and_long_answers(site: Site) -> None:
    started = time.monotonic()
    assert "<h1>drip</h1>" in get(site, "/drip?seconds=0.2").text
    assert time.monotonic() - started >= 0.2
    assert len(get(site, "/huge?mb=1.5").body) == 1_572_864
    chunked = get(site, "/huge?mb=1&length=no&attachment=yes")
    assert (len(chunked.body), chunked.headers["Content-Length"]) == (1_048_576, None)
    assert chunked.headers["Content-Disposition"] == 'attachment; filename="huge.html"'


def test_answers_without_an_end(site: Site) -> None:
    with ask(site, "/endless?rate=20000000") as plug:
        got = read_until(plug, b"<p>x</p>\n" * 1000)
        assert got.index(b"<h1>top</h1>") < got.index(b"<p>x</p>")
    with ask(site, "/mjpeg") as plug:
        got = read_until(plug, b"IEND")
        assert b"multipart/x-mixed-replace; boundary=part" in got
        assert b"--part\r\nContent-Type: image/png\r\nContent-Length: 1024\r\n" in got
    with ask(site, "/events") as plug:
        assert b"Content-Type: text/event-stream" in read_until(plug, b"data: 1\n\n")


@pytest.mark.parametrize(
    ("path", "status", "to"),
    [
        ("/redirect", 302, "/ok"),
        ("/redirect?to=http%3A%2F%2Fb.test%2F%3Fq&status=308", 308, "http://b.test/?q"),
        ("/l1", 302, "/l2"),
        ("/l2", 302, "/l1"),
        ("/n?i=7", 302, "/n?i=8"),
    ],
)
def test_redirects(site: Site, path: str, status: int, to: str) -> None:
    got = get(site, path)
    assert (got.status, got.headers["Location"]) == (status, to)


def test_websocket(site: Site) -> None:
    def masked(kind: int, content: bytes) -> bytes:
        size = (
            bytes((0x80 | len(content),)) if len(content) < 126 else b"\xfe" + struct.pack(">H", len(content))
        )
        return (
            bytes((0x80 | kind,)) + size + b"\1\2\3\4" + bytes(b ^ (i % 4 + 1) for i, b in enumerate(content))
        )

    with connect(site) as plug:
        plug.sendall(
            b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        # The pair of RFC 6455, 1.3.
        assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in read_until(plug, b"\r\n\r\n")
        for sent, back in (
            (masked(1, b"hello"), b"\x81\x05hello"),
            (masked(2, b"x" * 300), b"\x82\x7e\x01\x2c" + b"x" * 300),
            (masked(9, b"p"), b"\x8a\x01p"),
            (masked(8, b"\x03\xe8"), b"\x88\x02\x03\xe8"),
        ):
            plug.sendall(sent)
            assert read_until(plug, back) == back
        assert plug.recv(1) == b""
    assert site.aborted("/ws") == 0


# HTTP itself ----------------------------------------------------------------------------------------


def test_one_connection_serves_many_requests(site: Site) -> None:
    with connect(site) as plug:
        plug.sendall(b"HEAD /ok HTTP/1.1\r\n\r\nGET http://x.test/n204?a HTTP/1.1\r\n\r\n")
        plug.sendall(b"GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n")
        got = read_all(plug)
    assert re.findall(rb"HTTP/1.1 (\d+)", got) == [b"200", b"204", b"200"]
    assert b"<h1>ok</h1>" not in got
    assert b"<h1>echo</h1>" in got
    assert [request.target for request in site.requests()] == ["/ok", "/n204?a", "/echo"]


@pytest.mark.parametrize(
    "head",
    [b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nnocolon\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"],
)
def test_nonsense_gets_400(site: Site, head: bytes) -> None:
    with connect(site) as plug:
        plug.sendall(head)
        assert read_all(plug).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_a_very_long_address(site: Site) -> None:
    assert get(site, "/ok?" + "x" * 100_000).status == 200
