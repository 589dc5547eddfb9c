"""Pages whose scripts give a browser work: never idle, blocking, moving on, asking, opening windows."""

from __future__ import annotations

import asyncio
import html
from typing import Final

from tests.site import websocket
from tests.site.layout import plain
from tests.site.request import BadRequest
from tests.site.routes import Routes
from tests.site.wire import Exchange, Reply

ROUTES = Routes("Restless pages", "Sound answers whose scripts or styles keep a browser, or a camera, busy.")


def _give(path: str, about: str, body: str, *, example: str = "") -> None:
    text = plain(path.strip("/"), body)
    ROUTES.give(path, about, lambda _: text, example=example)


# Never idle -----------------------------------------------------------------------------------------

_give(
    "/poll",
    "Asks again three times a second, and waits for one answer that never comes.",
    "<p>ready</p><script>setInterval(()=>fetch('/ok?'+Date.now()),300);fetch('/hang')</script>",
)

_WS_PAGE = plain(
    "websocket",
    '<h1>websocket</h1><p id="state">connecting</p><ol id="log"></ol><script>'
    "const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/ws`);"
    "let number = 0;"
    "const say = () => socket.send('ping ' + ++number);"
    "socket.onopen = () => { state.textContent = 'open'; say(); setInterval(say, 1000) };"
    "socket.onmessage = e => { const li = document.createElement('li'); li.textContent = e.data;"
    " log.append(li) };"
    "socket.onclose = () => { state.textContent = 'closed' }</script>",
)


@ROUTES.at("/ws", "Keeps a websocket open and talks over it each second.")
async def ws(exchange: Exchange) -> str | None:
    if exchange.request.header("upgrade").lower() != "websocket":
        return _WS_PAGE
    await websocket.echo(exchange)
    return None


_give(
    "/spin",
    "Blocks its own main thread as soon as it has loaded.",
    "<h1>x</h1><script>addEventListener('load',()=>setTimeout(()=>{for(;;){}},0))</script>",
)
_give("/crash-me", "A quiet page, for tests that kill its process.", "<h1>crash me</h1><p>Waiting.</p>")

# Asking, opening ------------------------------------------------------------------------------------

_give(
    "/beforeunload",
    "Asks whether you really want to leave.",
    '<input id=i><script>onbeforeunload=e=>{e.preventDefault();return "x"}</script>',
)


@ROUTES.at("/popups", "A button that opens three windows; x= names a host for one of them.")
def popups(exchange: Exchange) -> str:
    other = exchange.request.query.get("x", exchange.host)
    if not other.replace(".", "").replace("-", "").replace(":", "").isalnum():
        raise BadRequest(f"x is {other!r}: give host:port")
    # `window.` is needed: in an element's own handler a bare `open` is document.open, which wipes the page.
    script = (
        f"window.open('/ok');window.open('http://{other}/');let w=window.open('');"
        "w.document.write('<script>open(\\'/ok\\')<\\/script>');w.close()"
    )
    return plain("popups", f'<h1>popups</h1><button onclick="{html.escape(script)}">go</button>')


@ROUTES.at("/csp", "A policy that allows no script but the site's own files.")
def csp(_: Exchange) -> Reply:
    policy = "default-src 'none'; script-src 'self'; require-trusted-types-for 'script'"
    body = (
        "<ul><li>a</li></ul>"
        "<script>document.body.append('the inline script ran')</script>"  # must stay blocked
    )
    return Reply(plain("csp", body), headers={"Content-Security-Policy": policy})


# Moving on ------------------------------------------------------------------------------------------

_NEW = plain("new", "<p>new</p>")


@ROUTES.at("/new", "Where the next two lead, after 0.3 s.")
async def new(_: Exchange) -> str:
    await asyncio.sleep(0.3)
    return _NEW


_REFRESH: Final = {
    "unquoted": '<META HTTP-EQUIV=REFRESH CONTENT="0; URL=/new"><p>old</p>',
    "quoted": '<meta http-equiv="refresh" content="0;URL=\'/new\'"><p>old</p>',
    "script": "<p>old</p><script>const m=document.createElement('meta');m.httpEquiv='refresh';"
    "m.content='0; URL=/new';document.head.append(m)</script>",
    "later": '<meta http-equiv="refresh" content="30;url=/later"><p>now</p>',
}


@ROUTES.at(
    "/meta-refresh",
    "Moves on by a meta tag; kind= is unquoted, quoted, script or later (30 s).",
    example="/meta-refresh?kind=quoted",
)
def meta_refresh(exchange: Exchange) -> str:
    kind = exchange.request.query.get("kind", "unquoted")
    if kind not in _REFRESH:
        raise BadRequest(f"kind is {kind!r}: give one of {', '.join(_REFRESH)}")
    return plain("refresh", _REFRESH[kind])


_give(
    "/client-redirect",
    "Moves on by script right after it has loaded.",
    "<p>old</p><script>addEventListener('load',()=>setTimeout(()=>location='/new',0))</script>",
)

# Hard to photograph ---------------------------------------------------------------------------------

_give(
    "/lazy",
    "Five green pictures down a long page, each loaded when it comes near.",
    "<style>body{margin:0;height:8400px;position:relative}img{position:absolute;left:0}</style>"
    + "".join(
        f'<img loading="lazy" width="100" height="100" alt="" style="top:{top}px"'
        f' src="/image.png?color=008000&amp;width=100&amp;height=100&amp;delay=0.3&amp;n={top}">'
        for top in range(0, 8001, 2000)
    ),
)


@ROUTES.at("/sticky", "A red bar that stays at the top; position= is sticky or fixed.")
def sticky(exchange: Exchange) -> str:
    position = exchange.request.query.get("position", "sticky")
    if position not in ("sticky", "fixed"):
        raise BadRequest(f"position is {position!r}: give sticky or fixed")
    return plain(
        "sticky",
        "<style>body{margin:0;background:#fff}"
        f"header{{position:{position};top:0;left:0;width:100%;height:50px;background:red}}</style>"
        '<header></header><div style="height:3000px"></div>',
    )
