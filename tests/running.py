"""The whole service in a process of its own, with a real browser, for tests that call it as a user does."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Running:
    """One service: its address, its process, its log."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self.address = f"127.0.0.1:{port}"
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def call(self, path: str, body: Any = None, *, method: str = "", timeout: float = 60) -> Answer:
        connection = http.client.HTTPConnection(self.address, timeout=timeout)
        try:
            data = None if body is None else json.dumps(body)
            headers = {"Content-Type": "application/json"} if data is not None else {}
            connection.request(method or ("GET" if body is None else "POST"), path, data, headers)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def scrape(self, url: str, **more: Any) -> Answer:
        return self.call("/v1/scrape", {"url": url, **more})

    def pool(self) -> Any:
        return self.call("/v1/pool").json()

    def ready(self) -> bool:
        assert self.process.poll() is None, self.log
        try:
            return self.call("/readyz").status == 200
        except OSError:
            return False

    def stop(self, by: signal.Signals = signal.SIGTERM, within: float = 40) -> int:
        self.process.send_signal(by)
        return self.process.wait(within)


def until(true: Callable[[], Any], seconds: float = 10) -> None:
    """Wait until it is true: what another process does has no event here."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"did not come true in {seconds} s"
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_service(folder: Path, *, wait: bool = True, **settings: object) -> Iterator[Running]:
    """Start the service with its data and log in the folder; ``settings`` are ARACHNE_ names in lower case.

    Ends it at the end of the block, which must be in order unless the test ended it itself.
    """
    port = free_port()
    given = {f"ARACHNE_{name.upper()}": str(value) for name, value in settings.items()}
    environment = os.environ | {"ARACHNE_PORT": str(port), "ARACHNE_DATA_DIR": str(folder / "data")} | given
    log = folder / "serve.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "api", "serve"], env=environment, cwd=ROOT, stdout=out, stderr=out
        )
    service = Running(port, process, log)
    try:
        if wait:
            until(service.ready, 60)
        yield service
    except BaseException:
        process.kill()
        process.wait()
        raise
    if process.poll() is None:
        assert service.stop() == 0, service.log
