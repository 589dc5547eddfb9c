"""`arachne serve`: run the service until a signal ends it, in good order."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Annotated

import structlog
import typer
import uvicorn
import uvloop
from fastapi import FastAPI

from api.app import create_app
from api.cli.port import BACKLOG, listen
from api.logs import set_up_logging
from api.settings import Settings, load_settings

log = structlog.stdlib.get_logger("api.serve")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
AT_ONCE = 3.0
"""Seconds that a second signal leaves for clearing away; then the process ends as it is."""


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on [ARACHNE_HOST].")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on [ARACHNE_PORT].", min=1, max=65535)
    ] = None,
) -> None:
    """Run the service. A signal (SIGINT, SIGTERM) ends it in good order, a second one at once."""
    settings = load_settings(host=host, port=port)
    set_up_logging(settings.log_format, settings.log_level)
    with (
        listen(settings.host, settings.port) as taken,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as r,
    ):
        r.run(run_service(create_app(settings), settings, taken))


async def run_service(app: FastAPI, settings: Settings, taken: socket.socket) -> None:
    """Serve on this socket until a signal, then let what runs finish, then end the pool."""
    server = Server(app, settings)
    loop = asyncio.get_running_loop()
    # Ours from before the first browser until after the last: uvicorn's would be gone while the pool ends.
    for number in SIGNALS:
        loop.add_signal_handler(number, server.asked_to_stop, number)
    try:
        async with app.router.lifespan_context(app):
            await server.serve(sockets=[taken])
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
    log.info("stopped")


class Server(uvicorn.Server):
    """uvicorn's server without its signals and its lifespan: both are ours."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=math.ceil(settings.drain_timeout),
            )
        )
        self._app = app
        self._settings = settings

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # Plain, and last: what a person who started it wants to know.
        print(f"Arachne Pool is up: open {address(self._settings)}", flush=True)

    def asked_to_stop(self, number: int) -> None:
        """First: no new leases, who waits hears it now, what runs may finish. Second: everything ends."""
        name = signal.Signals(number).name
        if not self.should_exit:
            log.info("stopping", signal=name, grace=self._settings.drain_timeout)
            self._app.state.pool.drain()
            self.should_exit = True
        elif not self.force_exit:
            log.warning("stopping at once", signal=name)
            self.force_exit = True
            for task in tuple(self.server_state.tasks):
                task.cancel("a second signal")
            asyncio.get_running_loop().call_later(AT_ONCE, os._exit, 1)
        else:
            os._exit(1)


def address(settings: Settings) -> str:
    """Where to look at the service with a browser on this machine."""
    host = settings.host
    try:
        given = ip_address(host)
    except ValueError:
        return f"http://{host}:{settings.port}/"  # a name
    if given.is_unspecified:  # all of the machine's addresses
        host = "127.0.0.1" if given.version == 4 else "::1"
    return f"http://[{host}]:{settings.port}/" if given.version == 6 else f"http://{host}:{settings.port}/"
