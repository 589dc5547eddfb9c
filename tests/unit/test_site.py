"""The local site as a tool: what it counts, what can be added to it, how it starts and ends."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.site import Exchange, Reply, Site
from tests.site.visit import ask, connect, eventually, get, read_until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def running_site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def site(running_site: Site) -> Site:
    running_site.reset()
    return running_site


# Echo, state, counts --------------------------------------------------------------------------------


def test_echo_and_set(site: Site) -> None:
    got = get(site, "/echo?q=1", method="POST", body="a<b", Cookie="k=v; n=2", X_Word="é")
    found = re.search(r'<pre id="request">(.*?)</pre>', got.text, re.DOTALL)
    assert found
    seen = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert (seen["method"], seen["query"], seen["body"]) == ("POST", {"q": "1"}, "a<b")
    assert seen["cookies"] == {"k": "v", "n": "2"}
    assert seen["headers"]["host"] == site.host_port
    kept = get(site, "/set?a=1&b=%3C/script%3E%0d")
    assert kept.headers.get_all("Set-Cookie") == ["a=1; Path=/", "b=%3C/script%3E%0D; Path=/"]
    assert kept.text.count("</script>") == 1


def test_counting(site: Site) -> None:
    get(site, "/ok?x=1")
    get(site, "/ok?x=2")
    assert get(site, "/count").text.endswith('<p id="count">1</p>')
    assert (site.hits("/ok"), site.hits("/ok?x=2"), site.hits("/hang"), site.hits()) == (2, 1, 0, 3)
    assert [request.query["x"] for request in site.requests("/ok")] == ["1", "2"]
    site.reset()
    assert (site.hits(), site.requests(), site.gauge_max) == (0, [], 0)


def test_the_gauge_remembers_its_maximum(site: Site) -> None:
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: get(site, "/gauge?seconds=0.2"), range(3)))
    get(site, "/gauge?seconds=0")
    assert site.gauge_max == 3


def test_a_client_that_leaves_is_noticed(site: Site) -> None:
    for path in ("/hang", "/endless", "/events"):
        with ask(site, path):
            eventually(lambda: site.running() == 1)
            assert (site.running(path), site.aborted(path)) == (1, 0)
        eventually(lambda: site.running() == 0)
        assert site.aborted(path) == 1
    get(site, "/ok")
    get(site, "/huge?mb=1")
    eventually(lambda: site.open_connections == 0)
    assert site.aborted("/ok") == site.aborted("/huge") == 0


def test_half_of_a_long_answer_counts_as_aborted(site: Site) -> None:
    with ask(site, "/huge?mb=200") as plug:
        read_until(plug, b"<p>huge</p>")
    eventually(lambda: site.aborted("/huge") == 1)


# Site -----------------------------------------------------------------------------------------------


def test_add(site: Site) -> None:
    async def slow(exchange: Exchange) -> bytes:
        await asyncio.sleep(0)
        return exchange.request.path.encode()

    async def by_hand(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.0 200 OK\r\n\r\nraw")

    address = site.add(
        "/mine", "é", content_type="text/plain; charset=utf-8", status=201, headers={"X-A": "b"}
    )
    assert address == site.url("/mine")
    mine = get(site, "/mine")
    assert (mine.status, mine.text, mine.headers["X-A"]) == (201, "é", "b")
    site.add("/any/*", slow, content_type=None)
    assert (get(site, "/any/thing").body, get(site, "/any/thing").kind) == (b"/any/thing", "")
    site.add("/ok", lambda exchange: f"mine {exchange.request.query['q']}")
    assert get(site, "/ok?q=2").text == "mine 2"
    site.add("/reply", lambda _: Reply("x", 418, headers=[("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]))
    assert get(site, "/reply").headers.get_all("Set-Cookie") == ["a=1", "b=2"]
    site.add("/hand", by_hand)
    assert get(site, "/hand").body == b"raw"
    site.add("/lie", b"abc", headers={"Content-Length": "9"})
    with pytest.raises(http.client.IncompleteRead):
        get(site, "/lie")
    site.reset()
    assert get(site, "/ok").text.endswith("<h1>ok</h1>")


def test_a_mistake_in_a_page_is_told_at_the_end() -> None:
    site = Site()
    site.start()
    site.add("/wrong", lambda exchange: exchange.request.query["none"])
    assert get(site, "/wrong").status == 500
    with pytest.raises(KeyError, match="none"):
        site.stop()
    site.stop()


def test_a_mistake_in_a_page_does_not_hide_the_tests_own() -> None:
    def failing() -> None:
        with Site() as site:
            site.add("/wrong", lambda _: 1 / 0)  # type: ignore[arg-type, return-value]  # wrong on purpose
            get(site, "/wrong")
            raise LookupError("the test's own")

    with pytest.raises(LookupError) as raised:
        failing()
    assert "ZeroDivisionError" in raised.value.__notes__[0]


def test_stop_is_quick_whatever_hangs() -> None:
    site = Site()
    site.stop()  # before the start: quiet
    site.start()
    site.start()
    plugs = [
        ask(site, path)
        for path in ("/hang", "/endless", "/mjpeg", "/sleep60", "/gauge", "/huge?mb=500", "/no")
    ]
    plugs.append(connect(site))
    eventually(lambda: site.hits() == 7)
    started = time.monotonic()
    site.stop()
    site.stop()
    assert time.monotonic() - started < 1
    assert (site.open_connections, site.aborted("/hang")) == (0, 0)
    assert not [thread for thread in threading.enumerate() if thread.name == f"site {site.host_port[10:]}"]
    for plug in plugs:
        plug.close()
    with pytest.raises(ConnectionRefusedError):
        connect(site)


async def test_several_sites_in_async_tests() -> None:
    async with Site() as one, Site() as two:
        assert one.origin == one.host_port != two.host_port
        assert one.url("/a").removeprefix("http://") == f"{one.host_port}/a"
        one.add("/only", "one")
        assert (await asyncio.to_thread(get, one, "/only")).status == 200
        assert (await asyncio.to_thread(get, two, "/only")).status == 404
        assert (one.hits(), two.hits()) == (1, 1)


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl to make a certificate")
def test_https(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
         "2", "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with Site(tls=tls) as site:
        assert site.url("/ok").startswith("https://")
        trusting = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection(site.host_port, context=trusting, timeout=5)
        connection.request("GET", "/ok")
        assert b"<h1>ok</h1>" in connection.getresponse().read()
        connection.close()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_as_a_program(ending: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.site", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr
        line = program.stderr.readline()
        address = re.search(r"http://(127\.0\.0\.1):(\d+)/", line)
        assert address, line
        with socket.create_connection((address[1], int(address[2])), timeout=5) as plug:
            plug.sendall(b"GET /hang HTTP/1.1\r\n\r\n")
            os.kill(program.pid, ending)
            assert program.wait(5) == 0
        told = program.stderr.read()
        # 3.13.0 alone wakes a closed server twice when a transport is collected, and says so.
        assert told == "" or (sys.version_info[:3] == (3, 13, 0) and "_SelectorTransport.__del__" in told)


def test_a_port_that_is_taken(site: Site) -> None:
    port = site.host_port.partition(":")[2]
    command = [sys.executable, "-m", "tests.site", "--port", port]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10, check=False)
    assert ended.returncode == 1
    assert "try another --port" in ended.stderr
    assert "Traceback" not in ended.stderr
