"""The site itself: a small server in a thread of its own, for tests with and without an event loop."""

from __future__ import annotations

import asyncio
import inspect
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from tests.site import answers, basics, faults, front, pages, restless
from tests.site.counts import Counts
from tests.site.request import Request
from tests.site.wire import HTML, Answer, Connection, Exchange, Handler, Headers, Reply

TABLES = (pages.ROUTES, basics.ROUTES, answers.ROUTES, restless.ROUTES, faults.ROUTES)
BUILT_IN: dict[str, Handler] = {route.path: route.handler for table in TABLES for route in table.all}
BUILT_IN["/"] = front.front_page(TABLES)
# The longest first, so that the closest one answers.
PREFIXES = sorted((path[:-1] for path in BUILT_IN if path.endswith("*")), key=len, reverse=True)

STOP_TIMEOUT = 5.0


class Site:
    """``with Site() as site: visit(site.url("/ok"))``; several may run at once.

    Port 0 takes a free one. ``tls`` makes it an https site.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext | None = None) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._added: dict[str, Handler] = {}
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_asked: asyncio.Event | None = None
        self.counts = Counts()
        self.connections: set[Connection] = set()
        self.stopping = False
        self.errors: list[Exception] = []
        """What pages of ``add`` raised; the first is raised again by ``stop``."""

    # Life ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen. Comes back at once: from here on the system queues connections until the loop runs."""
        if self._thread is not None:
            return
        listener = socket.create_server((self._host, self._port), backlog=512)
        self._port = listener.getsockname()[1]
        self.stopping = False
        self._loop = asyncio.new_event_loop()
        self._stop_asked = asyncio.Event()
        self._thread = threading.Thread(
            target=self._run,
            args=(self._loop, listener, self._stop_asked),
            name=f"site {self._port}",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """End at once, whatever hangs; raises what a page of ``add`` raised."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        assert self._loop is not None
        assert self._stop_asked is not None
        self.stopping = True
        self._loop.call_soon_threadsafe(self._stop_asked.set)
        thread.join(STOP_TIMEOUT)
        assert not thread.is_alive(), f"the site on {self.host_port} did not end in {STOP_TIMEOUT:g} s"
        if self.errors:
            raise self.errors.pop(0)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_after(error)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._stop_after, error)

    def _stop_after(self, error: BaseException | None) -> None:
        if error is not None and self.errors:  # must not hide what the test itself found
            error.add_note(f"a page of the site on {self.host_port} failed too: {self.errors!r}")
            self.errors = []
        self.stop()

    def _run(
        self, loop: asyncio.AbstractEventLoop, listener: socket.socket, stop_asked: asyncio.Event
    ) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._serve(listener, stop_asked))

    async def _serve(self, listener: socket.socket, stop_asked: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self), sock=listener, ssl=self._tls)
        await stop_asked.wait()
        server.close()
        ending = [task for connection in list(self.connections) if (task := connection.end())]
        await asyncio.gather(*ending, return_exceptions=True)
        # Those that the system accepted in the last moment drop themselves, in the loop's next rounds.
        while self.connections:  # noqa: ASYNC110 - it lasts a round or two, and nothing else runs
            await asyncio.sleep(0)

    # Addresses -------------------------------------------------------------------------------------

    @property
    def host_port(self) -> str:
        assert self._port, "the site has no port before it starts: use it in a `with` block"
        return f"{self._host}:{self._port}"

    @property
    def origin(self) -> str:
        """Host and port, as an egress policy's list names them."""
        return self.host_port

    def url(self, path: str = "/") -> str:
        return f"{'http' if self._tls is None else 'https'}://{self.host_port}{path}"

    # What it saw -----------------------------------------------------------------------------------

    def hits(self, path: str = "") -> int:
        """Requests so far for this path with any query, for this path and query, or ("") for anything."""
        return self.counts.hits[path] if path else self.counts.total

    def requests(self, path: str = "") -> list[Request]:
        """The requests themselves, oldest first."""
        return [request for request in tuple(self.counts.requests) if path in ("", request.path)]

    def aborted(self, path: str) -> int:
        """How often the client closed the connection before the answer to this path had ended."""
        return self.counts.aborted[path]

    def running(self, path: str = "") -> int:
        """Answers to this path ("": to all) that have begun and not ended."""
        running = self.counts.running
        return running[path] if path else sum(tuple(running.values()))

    @property
    def gauge_max(self) -> int:
        """The most visits of /gauge at one time."""
        return self.counts.gauge_max

    @property
    def open_connections(self) -> int:
        """Connections open now, those that a browser keeps for later included."""
        return len(self.connections)

    # For one test ----------------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget what was seen and what was added."""
        self.counts = Counts()
        self._added = {}
        self.errors = []

    def add(
        self,
        path: str,
        body: str | bytes | Callable[[Exchange], Answer | Awaitable[Answer]] = b"",
        *,
        content_type: str | None = HTML,
        status: int = 200,
        headers: Headers = (),
    ) -> str:
        """Answer this path (``*`` at its end: all that begin so) with this; gives back the address.

        A function gets the Exchange. Text or bytes it returns are sent with this type, status and
        headers; a Reply as it is; after None, what it wrote with ``send`` is the whole answer.
        """

        async def answer(exchange: Exchange) -> Answer:
            made = body(exchange) if callable(body) else body
            if inspect.isawaitable(made):
                made = await made
            if isinstance(made, str | bytes):
                return Reply(made, status, content_type, headers)
            return made

        # Replaced whole: the site's loop may be looking for a path at this moment.
        self._added = {**self._added, path: answer}
        return self.url(path.rstrip("*"))

    # Called by connections -------------------------------------------------------------------------

    def find(self, path: str) -> Handler:
        for table, prefixes in (
            (self._added, [name[:-1] for name in self._added if name.endswith("*")]),
            (BUILT_IN, PREFIXES),
        ):
            if path in table:
                return table[path]
            for prefix in prefixes:
                if path.startswith(prefix):
                    return table[f"{prefix}*"]
        return front.not_found

    def failed(self, error: Exception) -> None:
        self.errors.append(error)
