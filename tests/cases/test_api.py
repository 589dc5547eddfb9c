"""API-02, API-05 and API-06: health under load, a start that hangs, work in threads that never ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from api.workers import Workers
from arachne_pool.testing import Gate
from tests.services import URL, client_of, is_problem, service, until

ROOT = Path(__file__).parents[2]


async def test_api_02_liveness_needs_nothing_that_may_be_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    monkeypatch.setattr("api.scrape.work.read", lambda *_: let_go.wait(10))
    app = service(tmp_path, Gate())
    async with client_of(app) as client:
        # Every thread of ours and of the loop's own executor is busy, and many more pieces wait.
        blocked = [asyncio.create_task(asyncio.to_thread(let_go.wait, 10)) for _ in range(60)]
        scrapes = [asyncio.create_task(client.post("/v1/scrape", json={"url": URL})) for _ in range(4)]
        await until(lambda: app.state.workers.status().busy == 4)
        for _ in range(20):
            begun = time.monotonic()
            assert (await client.get("/livez")).status_code == 200
            assert time.monotonic() - begun < 0.5
        let_go.set()
        await asyncio.gather(*blocked)
        await asyncio.gather(*scrapes, return_exceptions=True)


async def test_api_06_threads_that_never_end_are_counted_refused_and_recovered_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    app = service(tmp_path, Gate())
    app.state.workers = Workers(4)
    async with client_of(app) as client:
        with monkeypatch.context() as patch:
            patch.setattr("api.scrape.work.read", lambda *_: let_go.wait(60))
            begun = time.monotonic()
            order = {"url": URL, "timeout": 0.5}
            answers = await asyncio.gather(*(client.post("/v1/scrape", json=order) for _ in range(20)))
            assert time.monotonic() - begun < 4
        codes = {answer.json()["code"] for answer in answers}
        assert codes <= {"visit_timeout", "lease_timeout", "queue_full"}
        timed_out = [a.json() for a in answers if a.json()["code"] == "visit_timeout"]
        assert {body["stage"] for body in timed_out} == {"extract"}

        gauge = (await client.get("/v1/pool")).json()["workers"]
        assert gauge == {"threads": 4, "busy": 4, "stuck": 4, "waiting": 0}
        refused = await client.post("/v1/scrape", json={"url": URL})
        assert is_problem(refused, 429, "queue_full")["stage"] == "extract"

        let_go.set()
        await until(lambda: app.state.workers.status().stuck == 0)
        assert (await client.post("/v1/scrape", json={"url": URL})).status_code == 200


# API-05: a real process, whose browser is none --------------------------------------------------------


@contextmanager
def serving(tmp_path: Path, executable: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ARACHNE_")},
        "PYTHONPATH": str(ROOT),
        "ARACHNE_DATA_DIR": str(tmp_path / "data"),
        "ARACHNE_CHROMIUM_PATH": str(executable),
        "ARACHNE_PORT": str(port),
    }
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "api", "serve"], env=environment, stdout=log, stderr=log, cwd=tmp_path
        )
    try:
        yield process, port
    finally:
        process.kill()
        process.wait()


def get(port: int, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except urllib.error.URLError:
        return 0, b""


def wait_for(port: int, path: str, sign: str) -> Any:
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        _, body = get(port, path)
        if sign in body.decode():
            return body
        time.sleep(0.05)
    raise AssertionError(f"{path} never said {sign!r}")


@pytest.mark.parametrize("kind", ["missing", "not executable", "hangs"])
def test_api_05_without_a_browser_it_lives_is_not_ready_and_ends_at_once(tmp_path: Path, kind: str) -> None:
    executable = tmp_path / "browser"
    if kind != "missing":
        executable.write_text("#!/bin/sh\nexec sleep 1000\n")
        executable.chmod(0o755 if kind == "hangs" else 0o644)
    with serving(tmp_path, executable) as (process, port):
        wait_for(port, "/livez", "ok")
        sign = "is being started" if kind == "hangs" else "engine_missing"
        wait_for(port, "/readyz", sign)
        status, body = get(port, "/readyz")
        assert (status, json.loads(body)["ready"]) == (503, False)
        assert get(port, "/livez") == (200, b"ok")
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert process.wait(timeout=15) == 0
        assert time.monotonic() - begun < 8
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    if kind != "hangs":
        assert "ARACHNE_CHROMIUM_PATH" in log
