"""The log: one form for all lines, the request's id in each, no secrets, the pool's events."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from api.logs import log_pool_events, mask, set_up_logging
from arachne_pool import BrowserPool, PoolConfig
from arachne_pool.testing import FakeDriver, Gate


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Logging is the process's: give it back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {
        name: logging.getLogger(name).level for name in ("uvicorn.access", "uvicorn.error", "sqlalchemy")
    }
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, old in levels.items():
        logging.getLogger(name).setLevel(old)
    logging.captureWarnings(False)
    structlog.reset_defaults()


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_both_kinds_of_loggers_give_the_same_json() -> None:
    out = io.StringIO()
    set_up_logging("json", stream=out)
    with structlog.contextvars.bound_contextvars(request_id="r1"):
        structlog.stdlib.get_logger("api.x").info("hello", answer=42)
        logging.getLogger("arachne_pool").warning("took %g s", 1.5)
    ours, theirs = lines(out)
    assert (ours["event"], ours["answer"], ours["level"], ours["logger"]) == ("hello", 42, "info", "api.x")
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("took 1.5 s", "warning", "arachne_pool")
    assert ours["request_id"] == theirs["request_id"] == "r1"
    assert ours["timestamp"].endswith("Z")


def test_the_form_follows_where_it_goes() -> None:
    pipe, terminal = io.StringIO(), Terminal()
    set_up_logging("auto", stream=pipe)
    structlog.stdlib.get_logger("x").info("hello")
    set_up_logging("auto", stream=terminal)
    structlog.stdlib.get_logger("x").info("hello")
    assert pipe.getvalue().startswith("{")
    assert not terminal.getvalue().startswith("{")
    assert "hello" in terminal.getvalue()


def test_the_form_may_be_chosen() -> None:
    out, terminal = io.StringIO(), Terminal()
    set_up_logging("console", stream=out)
    structlog.stdlib.get_logger("x").info("hello")
    set_up_logging("json", stream=terminal)
    structlog.stdlib.get_logger("x").info("hello")
    assert not out.getvalue().startswith("{")
    assert terminal.getvalue().startswith("{")


def test_lines_below_the_level_are_left_out() -> None:
    out = io.StringIO()
    set_up_logging("json", "warning", stream=out)
    structlog.stdlib.get_logger("x").info("no")
    logging.getLogger("y").info("no")
    logging.getLogger("y").error("yes")
    assert [line["event"] for line in lines(out)] == ["yes"]


def test_a_logger_made_before_the_set_up_obeys_it() -> None:
    log = structlog.stdlib.get_logger("early")
    out = io.StringIO()
    set_up_logging("json", stream=out)
    log.info("hello")
    assert lines(out)[0]["logger"] == "early"


@pytest.mark.parametrize("style", ["json", "console"])
def test_tracebacks_are_there_and_masked(style: Any) -> None:
    out = io.StringIO()
    set_up_logging(style, stream=out)
    try:
        raise RuntimeError("no way to http://user:hunter2@proxy:3128")
    except RuntimeError:
        structlog.stdlib.get_logger("x").exception("failed")
    assert "Traceback" in out.getvalue()
    assert "http://***@proxy:3128" in out.getvalue()
    assert "hunter2" not in out.getvalue()


SECRET = "hunter2"


@pytest.mark.parametrize("style", ["json", "console"])
@pytest.mark.parametrize(
    "fields",
    [
        {"authorization": f"Bearer {SECRET}"},
        {"Authorization": SECRET},
        {"headers": {"Cookie": f"a={SECRET}", "set-cookie": SECRET, "Proxy-Authorization": SECRET}},
        {"proxy_password": SECRET},
        {"api_key": SECRET, "x-api-key": SECRET},
        {"proxy": f"http://me:{SECRET}@proxy:3128/"},
        {"url": f"https://{SECRET}@example.com/x"},
        {"many": [f"ws://a:{SECRET}@b"], "deep": [{"token": SECRET}]},
        {"text": f"sent Authorization: Basic {SECRET}"},
        {"text": f"sent with bearer {SECRET}"},
        {"raw": f"GET / HTTP/1.1\nCookie: session={SECRET}; b=2\nAccept: */*"},
    ],
)
def test_secrets_are_masked(style: Any, fields: dict[str, Any]) -> None:
    out = io.StringIO()
    set_up_logging(style, stream=out)
    structlog.stdlib.get_logger("x").info("hello", **fields)
    logging.getLogger("y").info("given %s", f"http://me:{SECRET}@proxy/")
    assert SECRET not in out.getvalue()
    assert "***" in out.getvalue()
    assert "hello" in out.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "http://example.com/a@b",
        "http://example.com/?q=me@example.com",
        "write to me@example.com",
        "see http://example.com/ and me@example.com",
        "the token of the page",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text) == text


@given(st.text("abcXYZ0189._~!$&'()*+,;=:@%-", min_size=1, max_size=30))
def test_no_user_info_gets_by(secret: str) -> None:
    assert mask(f"go to http://{secret}@example.com/x now") == "go to http://***@example.com/x now"


async def test_the_life_of_a_browser_is_logged() -> None:
    out = io.StringIO()
    set_up_logging("json", stream=out)
    gate = Gate()
    pool = BrowserPool(PoolConfig(size=1, warm=0), drivers={"chromium": FakeDriver(gate)})
    end = log_pool_events(pool)
    async with pool, pool.lease():
        pass
    launched, closed = (line for line in lines(out) if line["logger"] == "arachne_pool.events")
    assert (launched["event"], launched["engine"], launched["browser"]) == (
        "browser launched",
        "chromium",
        "chromium-1",
    )
    assert (closed["event"], closed["reason"], closed["served"]) == ("browser closed", "closed", 1)
    end()
    end()


async def test_a_failed_launch_is_logged_with_its_cause() -> None:
    out = io.StringIO()
    set_up_logging("json", stream=out)
    gate = Gate()
    gate.set("launch", "fail")
    pool = BrowserPool(PoolConfig(size=1, warm=0), drivers={"chromium": FakeDriver(gate)})
    log_pool_events(pool)
    async with pool:
        with pytest.raises(Exception, match="fake"):
            async with pool.lease(timeout=5):
                pass
    failed = next(line for line in lines(out) if line["event"] == "launch failed")
    assert failed["level"] == "error"
    assert "as told" in f"{failed['error']} {failed['cause']}"
