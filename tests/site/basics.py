"""The plain routes that most tests visit: ok, slow, silent, counted, echoed."""

from __future__ import annotations

import asyncio
import html
import json
import math
from urllib.parse import quote

from tests.site import front
from tests.site.layout import plain
from tests.site.routes import Routes
from tests.site.wire import Exchange, Reply

ROUTES = Routes("Plain answers", "Short pages for measuring, waiting and counting.")

OK = plain("ok", "<h1>ok</h1>")
ROUTES.give("/ok", "A heading that says ok.", lambda _: OK)


@ROUTES.at("/sleep*", "The same after so many seconds of silence.", example="/sleep2")
async def sleep(exchange: Exchange) -> str | Reply:
    try:
        seconds = float(exchange.request.path.removeprefix("/sleep"))
    except ValueError:
        return front.not_found(exchange)
    if not 0 <= seconds < math.inf:
        return front.not_found(exchange)
    await asyncio.sleep(seconds)
    return OK


@ROUTES.at("/hang", "Takes the request and never answers.")
async def hang(_: Exchange) -> None:
    await asyncio.get_running_loop().create_future()  # until the client goes or the site stops


@ROUTES.at("/echo", "Your request as JSON, and what this site keeps in your local storage.")
def echo(exchange: Exchange) -> str:
    request = exchange.request
    headers: dict[str, str] = {name: request.header(name) for name, _ in request.headers}
    seen = {
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "headers": headers,
        "cookies": request.cookies,
        "body": request.body.decode("utf-8", "replace"),
    }
    text = html.escape(json.dumps(seen, indent=2, ensure_ascii=False), quote=False)
    return plain(
        "echo",
        f'<h1>echo</h1><pre id="request">{text}</pre><h2>local storage</h2><pre id="storage"></pre>'
        "<script>document.getElementById('storage').textContent="
        "JSON.stringify({...localStorage}, null, 2)</script>",
    )


@ROUTES.at("/set", "Keeps each k=v of its query as a cookie and in local storage.", example="/set?theme=dark")
def set_state(exchange: Exchange) -> Reply:
    fields = exchange.request.query
    cookies = [("Set-Cookie", f"{quote(name)}={quote(value)}; Path=/") for name, value in fields.items()]
    # "<" is escaped because the text stands inside a script.
    text = json.dumps(fields).replace("<", "\\u003c")
    script = f"<script>for (const [k, v] of Object.entries({text})) localStorage.setItem(k, v)</script>"
    names = html.escape(", ".join(fields)) or "nothing"
    return Reply(plain("set", f'<h1>set</h1><p id="set">{names}</p>{script}'), headers=cookies)


@ROUTES.at("/gauge", "Takes a second and notes how many are here at once.")
async def gauge(exchange: Exchange) -> str:
    seconds = exchange.request.number("seconds", 1.0)
    counts = exchange.counts
    counts.gauge_up()
    try:
        await asyncio.sleep(seconds)
    finally:
        counts.gauge_down()
    return plain("gauge", f'<h1>gauge</h1><p>At most <b id="max">{counts.gauge_max}</b> at once.</p>')


@ROUTES.at("/count", "How often this page was asked for.")
def count(exchange: Exchange) -> str:
    return plain("count", f'<h1>count</h1><p id="count">{exchange.counts.hits["/count"]}</p>')
