"""The server's side of a websocket: enough to open one, echo what comes and end it in order."""

from __future__ import annotations

import base64
import hashlib

from tests.site.request import BadRequest
from tests.site.wire import Exchange

_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_LIMIT = 16 * 1024 * 1024


def accept_key(key: str) -> str:
    """The answer to the client's key (RFC 6455, 4.2.2)."""
    digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode(), usedforsecurity=False)
    return base64.b64encode(digest.digest()).decode()


async def echo(exchange: Exchange) -> None:
    """Shake hands, then send back each message until the client closes. Fragments are not joined."""
    key = exchange.request.header("sec-websocket-key")
    if not key:
        raise BadRequest("a websocket needs the header Sec-WebSocket-Key")
    await exchange.send(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept_key(key).encode() + b"\r\n\r\n"
    )
    while True:
        kind, content = await _read_frame(exchange)
        if kind == _CLOSE:
            await exchange.send(frame(_CLOSE, content))
            return
        if kind in (_TEXT, _BINARY, _PING):
            await exchange.send(frame(_PONG if kind == _PING else kind, content))


async def _read_frame(exchange: Exchange) -> tuple[int, bytes]:
    first, second = await exchange.receive(2)
    size = second & 0x7F
    if size >= 126:
        size = int.from_bytes(await exchange.receive(2 if size == 126 else 8), "big")
    if not second & 0x80 or size > _LIMIT:
        return _CLOSE, (1002).to_bytes(2, "big")  # an unmasked frame, or a monster: a protocol error
    mask = await exchange.receive(4)
    masked = await exchange.receive(size)
    return first & 0x0F, bytes(byte ^ mask[index % 4] for index, byte in enumerate(masked))


def frame(kind: int, content: bytes) -> bytes:
    size = len(content)
    if size < 126:
        length = bytes((size,))
    elif size < 65536:
        length = bytes((126,)) + size.to_bytes(2, "big")
    else:
        length = bytes((127,)) + size.to_bytes(8, "big")
    return bytes((0x80 | kind,)) + length + content
