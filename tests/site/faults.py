"""Servers that misbehave: connections cut, bytes missing, lies in the head, answers without end."""

from __future__ import annotations

import asyncio
import gzip
from typing import Final

from tests.site.layout import plain
from tests.site.pictures import solid
from tests.site.request import BadRequest
from tests.site.routes import Routes
from tests.site.wire import Exchange, Reply

ROUTES = Routes(
    "Faults", "Servers that cut, lie or never stop. A browser left alone with these has a bad day."
)

BLOCK: Final = 64 * 1024
MEBIBYTE: Final = 1024 * 1024

# Cut ------------------------------------------------------------------------------------------------


@ROUTES.at("/reset", "Takes the request and resets the connection.")
def reset(exchange: Exchange) -> None:
    exchange.reset()


@ROUTES.at("/close", "Takes the request and closes without a byte.")
def close(_: Exchange) -> None:
    return None


@ROUTES.at("/short", "Promises 1000 bytes and sends 300.")
async def short(exchange: Exchange) -> None:
    await exchange.start({"Content-Length": "1000"})
    await exchange.send(b"<p>half".ljust(300, b"."))


@ROUTES.at("/chunkcut", "Closes in the middle of a chunk.")
async def chunk_cut(exchange: Exchange) -> None:
    await exchange.start_chunked()
    await exchange.chunk(b"<p>first chunk</p>")
    await exchange.send(b"1000\r\n<p>half a chunk")


# Lies -----------------------------------------------------------------------------------------------


@ROUTES.at("/garbage", "Says hello instead of HTTP and closes.")
async def garbage(exchange: Exchange) -> None:
    await exchange.send(b"hello\n")


@ROUTES.at("/badstatus", "A status line without a number.")
async def bad_status(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 abc\r\n\r\n")


_ZIPPED = gzip.compress("".join(f"<p>line {n * n}</p>" for n in range(2000)).encode(), mtime=0)
ROUTES.give(
    "/gzipcut",
    "gzip of which the second half is missing.",
    lambda _: Reply(_ZIPPED[: len(_ZIPPED) // 2], headers={"Content-Encoding": "gzip"}),
)
ROUTES.give(
    "/brotli-lie",
    "Plain text that is called brotli.",
    lambda _: Reply("<h1>not brotli</h1>", headers={"Content-Encoding": "br"}),
)

# Too slow, too much ---------------------------------------------------------------------------------

_DRIP = plain("drip", "<h1>drip</h1><p>One byte at a time.</p>").encode()


@ROUTES.at("/drip", "A small page, byte by byte, in so many seconds.", example="/drip?seconds=5")
async def drip(exchange: Exchange) -> None:
    pause = exchange.request.number("seconds", 10.0) / len(_DRIP)
    await exchange.start({"Content-Length": str(len(_DRIP))})
    for byte in _DRIP:
        await exchange.send(bytes((byte,)))
        await asyncio.sleep(pause)


@ROUTES.at(
    "/huge", "So many MiB; with length=no in chunks, with attachment=yes a file.", example="/huge?mb=20"
)
async def huge(exchange: Exchange) -> None:
    request = exchange.request
    size = int(request.number("mb", 10.0, most=10_000) * MEBIBYTE)
    chunked = request.query.get("length") == "no"
    headers = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(size)}
    if request.query.get("attachment") == "yes":
        headers["Content-Disposition"] = 'attachment; filename="huge.html"'
    await exchange.start(headers)
    if request.method == "HEAD":
        return
    line = b"<p>huge</p>\n"
    block = line * (BLOCK // len(line))
    left = size
    while left:
        part = block[:left]
        left -= len(part)
        await (exchange.chunk(part) if chunked else exchange.send(part))
    if chunked:
        await exchange.chunk(b"")


@ROUTES.at("/endless", "A page without an end; rate= sets bytes a second.")
async def endless(exchange: Exchange) -> None:
    rate = exchange.request.number("rate", 0.0)
    line = b"<p>x</p>\n"
    pause, size = (0.05, max(1, int(rate * 0.05 / len(line)))) if rate else (0.5, 1)
    await exchange.start_chunked()
    await exchange.chunk(b"<!doctype html><title>endless</title><h1>top</h1>\n")
    while True:
        await exchange.chunk(line * size)
        await asyncio.sleep(pause)


@ROUTES.at("/mjpeg", "Pictures in one answer that goes on for ever (multipart/x-mixed-replace).")
async def mjpeg(exchange: Exchange) -> None:
    pictures = [solid(32, 32, colour).ljust(1024, b"\0") for colour in ("a4452c", "2f5d50")]
    await exchange.start(content_type="multipart/x-mixed-replace; boundary=part")
    turn = 0
    while True:
        picture = pictures[turn % 2]
        head = b"--part\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n" % len(picture)
        await exchange.send(head + picture + b"\r\n")
        turn += 1
        await asyncio.sleep(0.5)


@ROUTES.at("/events", "Server-sent events, one each half second, without end.")
async def events(exchange: Exchange) -> None:
    await exchange.start(content_type="text/event-stream")
    number = 0
    while True:
        number += 1
        await exchange.send(b"id: %d\ndata: %d\n\n" % (number, number))
        await asyncio.sleep(0.5)


# Redirects ------------------------------------------------------------------------------------------


def _redirect(to: str, status: int = 302) -> Reply:
    if any(ord(letter) < 32 or ord(letter) > 255 for letter in to):
        raise BadRequest("to holds what a header can't: percent-encode it")
    return Reply("<p>elsewhere</p>", status, headers={"Location": to})


@ROUTES.at("/redirect", "Redirects to to=, with status=.", example="/redirect?to=/ok&status=301")
def redirect(exchange: Exchange) -> Reply:
    status = int(exchange.request.number("status", 302))
    if not 300 <= status <= 399:
        raise BadRequest(f"status is {status}: give one from 300 to 399")
    return _redirect(exchange.request.query.get("to", "/ok"), status)


ROUTES.give("/l1", "Redirects to /l2, which redirects back.", lambda _: _redirect("/l2"))
ROUTES.give("/l2", "", lambda _: _redirect("/l1"))
ROUTES.give(
    "/n",
    "Redirects on and on, each time to a new address.",
    lambda exchange: _redirect(f"/n?i={int(exchange.request.number('i', 0)) + 1}"),
    example="/n?i=1",
)
