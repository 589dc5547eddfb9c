"""HTTP/1.1 on one connection, with every byte in the hands of the route that answers."""

from __future__ import annotations

import asyncio
import dataclasses
import http
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

from tests.site.counts import Counts
from tests.site.request import BadRequest, Request, parse_head

HTML: Final = "text/html; charset=utf-8"
MAX_HEAD: Final = 1024 * 1024
"""Bytes of a request's head: the cases visit addresses of 100 000 characters."""

Headers = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. A header given here wins over the one the server would have written."""

    body: bytes | str = b""
    status: int = 200
    content_type: str | None = HTML
    headers: Headers = ()

    @property
    def closes(self) -> bool:
        """Whether the route itself says how the answer ends: then nothing may follow on the connection."""
        own = {"connection", "content-length", "transfer-encoding"}
        return any(name.lower() in own for name, _ in _pairs(self.headers))

    def encode(self, *, keep_alive: bool = False, head_only: bool = False) -> bytes:
        body = self.body.encode() if isinstance(self.body, str) else self.body
        length = () if self.status in (204, 304) else (("Content-Length", str(len(body))),)
        given = _pairs(self.headers)
        head = encode_head(
            self.status, [*length, *given], content_type=self.content_type, keep_alive=keep_alive
        )
        return head if head_only or self.status in (204, 304) else head + body


Answer = Reply | str | bytes | None
"""Text and bytes are HTML; None means that the route wrote what it wanted and the connection ends."""
Handler = Callable[["Exchange"], Answer | Awaitable[Answer]]


def _pairs(headers: Headers) -> list[tuple[str, str]]:
    return list(headers.items()) if isinstance(headers, Mapping) else list(headers)


def encode_head(
    status: int, headers: Headers = (), *, content_type: str | None = HTML, keep_alive: bool = False
) -> bytes:
    # no-store: a page that came from the browser's cache would be missing from the hits.
    default = [("Cache-Control", "no-store"), ("Connection", "keep-alive" if keep_alive else "close")]
    if content_type is not None:
        default.append(("Content-Type", content_type))
    given = _pairs(headers)
    named = {name.lower() for name, _ in given}
    lines = [pair for pair in default if pair[0].lower() not in named]
    # A header given twice is sent twice, but for the length: the last word on it counts.
    lengths = [pair for pair in given if pair[0].lower() == "content-length"]
    lines += [pair for pair in given if pair[0].lower() != "content-length"] + lengths[-1:]
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unnamed"
    text = "".join(f"{name}: {value}\r\n" for name, value in lines)
    return f"HTTP/1.1 {status} {phrase}\r\n{text}\r\n".encode("latin-1")


class Host(Protocol):
    """What a connection needs of its site."""

    @property
    def counts(self) -> Counts: ...
    @property
    def stopping(self) -> bool: ...
    @property
    def connections(self) -> set[Connection]: ...
    def find(self, path: str) -> Handler: ...
    def failed(self, error: Exception) -> None: ...


class Exchange:
    """One request and the answer to it, as a route sees them."""

    def __init__(self, request: Request, connection: Connection, counts: Counts) -> None:
        self.request = request
        self.counts = counts
        self._connection = connection

    @property
    def host(self) -> str:
        """The host and port by which the client knows the site."""
        return self.request.header("host", "localhost")

    async def send(self, data: bytes) -> None:
        """Write these very bytes; comes back when the system has taken them."""
        await self._connection.send(data)

    async def start(self, headers: Headers = (), *, status: int = 200, content_type: str = HTML) -> None:
        """Write a head; the connection ends after the answer."""
        await self.send(encode_head(status, headers, content_type=content_type))

    async def start_chunked(self, *, content_type: str = HTML) -> None:
        await self.start([("Transfer-Encoding", "chunked")], content_type=content_type)

    async def chunk(self, data: bytes) -> None:
        """An empty one ends the answer."""
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def receive(self, size: int) -> bytes:
        """Exactly this many of the client's next bytes (after an upgrade)."""
        return await self._connection.receive(size)

    def reset(self) -> None:
        """End the connection with RST."""
        self._connection.reset()


class Connection(asyncio.Protocol):
    """One client's connection: requests in turn, until either side ends it."""

    def __init__(self, site: Host) -> None:
        self._site = site
        self._buffer = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._unanswered: Exchange | None = None
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    # Called by the loop ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # With no room in our own buffer, "sent" means that the system has the bytes.
        self._transport.set_write_buffer_limits(high=0)
        self._site.connections.add(self)
        if self._site.stopping:
            self._transport.abort()
            return
        self._task = asyncio.get_running_loop().create_task(self._run(), name="site connection")

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._arrived.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._site.connections.discard(self)
        if self._unanswered is not None and not self._site.stopping:
            self._unanswered.counts.aborted[self._unanswered.request.path] += 1
        if self._task is not None:
            self._task.cancel()

    # Called by routes and the site -----------------------------------------------------------------

    async def send(self, data: bytes) -> None:
        self._open().write(data)
        await self._writable.wait()

    async def receive(self, size: int) -> bytes:
        while len(self._buffer) < size:
            await self._more()
        return self._take(size)

    def reset(self) -> None:
        transport = self._open()
        # Lingering for 0 seconds makes the system drop the connection with RST instead of FIN.
        transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self._unanswered = None
        transport.abort()

    def end(self) -> asyncio.Task[None] | None:
        """Drop the connection at once; gives back the task that still has to notice."""
        self._open().abort()
        if self._task is not None:
            self._task.cancel()
        return self._task

    # The conversation ------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while await self._serve_one():
                pass
        finally:
            self._open().close()

    async def _serve_one(self) -> bool:
        """Answer the next request; says whether another may follow."""
        try:
            request = await self._read_request()
        except BadRequest as error:
            await self.send(Reply(f"<h1>Bad request</h1><p>{error!s}</p>", 400).encode())
            return False
        counts = self._site.counts  # kept: a reset meanwhile must not get this request's other half
        counts.arrived(request)
        exchange = self._unanswered = Exchange(request, self, counts)
        try:
            reply = await self._ask(exchange)
            if reply is None:
                return False
            alive = request.keeps_alive and not reply.closes
            await self.send(reply.encode(keep_alive=alive, head_only=request.method == "HEAD"))
            return alive
        finally:
            counts.running[request.path] -= 1
            if not self._open().is_closing():  # else connection_lost still has to count it
                self._unanswered = None

    async def _ask(self, exchange: Exchange) -> Reply | None:
        try:
            answer = self._site.find(exchange.request.path)(exchange)
            if isinstance(answer, Awaitable):
                answer = await answer
        except BadRequest as error:
            return Reply(f"<h1>Bad request</h1><p>{error!s}</p>", 400)
        except Exception as error:  # noqa: BLE001 - a test's own page may raise anything; stop() raises it
            self._site.failed(error)
            return Reply(f"<h1>This page failed</h1><pre>{error!r}</pre>", 500)
        return Reply(answer) if isinstance(answer, str | bytes) else answer

    async def _read_request(self) -> Request:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > MAX_HEAD:
                raise BadRequest(f"the request's head is longer than {MAX_HEAD} bytes")
            await self._more()
        request = parse_head(self._take(end + 4)[:-4])
        length = request.header("content-length", "0")
        if not length.isdecimal() or request.header("transfer-encoding"):
            raise BadRequest("a request with a body needs one Content-Length")
        if request.header("expect").lower() == "100-continue":
            await self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        return dataclasses.replace(request, body=await self.receive(int(length)))

    async def _more(self) -> None:
        self._arrived.clear()
        await self._arrived.wait()

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _open(self) -> asyncio.Transport:
        assert self._transport is not None, "the loop makes the connection before anything else"
        return self._transport
