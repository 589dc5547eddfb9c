"""The log: one way for all lines, with the request's id in each and without secrets."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, MutableMapping
from typing import Any, Literal, TextIO

import structlog
from structlog.types import Processor

from arachne_pool import BrowserClosed, BrowserLaunched, BrowserPool, Event, LaunchGivenUp

Format = Literal["auto", "console", "json"]

MASK = "***"
_SECRET_KEY = re.compile(
    r"(^|[-_.])(authorization|cookies?|set[-_]cookie|password|passwd|secret|token|api[-_]?key)$",
    re.IGNORECASE,
)
# What stands between :// and the last @ before the path: a URL's user name and password.
_USER_INFO = re.compile(r"(?<=://)[^/?#\s\"<>]*@")
_SCHEME_AND_TOKEN = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+", re.IGNORECASE)
_HEADER_LINE = re.compile(
    r"\b((?:proxy-)?authorization|(?:set-)?cookie)(['\"]?\s*[:=]\s*)[^\r\n]+", re.IGNORECASE
)

# Their info lines tell what our own lines tell, or what nobody asks for.
_QUIET = {"uvicorn.access": logging.WARNING, "uvicorn.error": logging.WARNING, "sqlalchemy": logging.WARNING}
_QUIET |= {"alembic": logging.WARNING, "aiosqlite": logging.WARNING, "httpx": logging.WARNING}


def set_up_logging(style: Format = "auto", level: str = "info", *, stream: TextIO | None = None) -> None:
    """Have every line written to ``stream`` (default: stderr): structlog's and the standard library's alike.

    Called again it takes the place of the former set-up.
    """
    out = stream or sys.stderr
    console = style == "console" or (style == "auto" and out.isatty())
    stamp = structlog.processors.TimeStamper("%H:%M:%S" if console else "iso", utc=not console)
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        stamp,
    ]
    render: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, mask_keys]
    if console:
        render.append(
            structlog.dev.ConsoleRenderer(colors=out.isatty(), exception_formatter=_plain_traceback)
        )
    else:
        render += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[*render, _mask_line]
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    for name, least in _QUIET.items():
        logging.getLogger(name).setLevel(max(least, root.level))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        # Loggers are made at import, before the set-up: they must not keep what they found then.
        cache_logger_on_first_use=False,
    )


def mask(text: str) -> str:
    """The text without user names and passwords in URLs, and without what follows Bearer, Cookie and kin."""
    return _mask_tokens(_HEADER_LINE.sub(lambda found: f"{found[1]}{found[2]}{MASK}", text))


def _mask_tokens(text: str) -> str:
    # Functions, not templates: a template is parsed by an import, which fails when the interpreter ends.
    text = _USER_INFO.sub(lambda _: f"{MASK}@", text)
    return _SCHEME_AND_TOKEN.sub(lambda found: f"{found[1]} {MASK}", text)


def mask_keys(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Mask what its key calls a secret, in dicts and lists too, and what looks like one in any text."""
    return {key: MASK if _SECRET_KEY.search(key) else _masked(value) for key, value in event.items()}


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {k: MASK if _SECRET_KEY.search(str(k)) else _masked(v) for k, v in value.items()}
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map(_masked, value))
    return value


def _mask_line(_logger: Any, _method: str, line: Any) -> Any:
    # Tracebacks are text only after rendering. In JSON a header's line ends where its string does, so
    # only what can't run over that end is masked here.
    assert isinstance(line, str), "renderers give text"
    return _mask_tokens(line)


def _plain_traceback(out: TextIO, exc_info: Any) -> None:
    structlog.dev.plain_traceback(out, exc_info)


def log_pool_events(pool: BrowserPool) -> Callable[[], None]:
    """Log what happens to the pool's browsers; returns the call that ends it."""
    log = structlog.stdlib.get_logger("arachne_pool.events")

    def heard(event: Event) -> None:
        match event:
            case BrowserLaunched():
                log.info(
                    "browser launched",
                    browser=event.browser_id,
                    engine=event.engine,
                    version=event.version,
                    pid=event.pid,
                    seconds=round(event.seconds, 3),
                )
            case LaunchGivenUp():
                cause = event.error.__cause__
                log.error(
                    "launch failed",
                    browser=event.browser_id,
                    engine=event.engine,
                    seconds=round(event.seconds, 3),
                    error=str(event.error),
                    cause=repr(cause) if cause is not None else None,
                )
            case BrowserClosed():
                unasked = event.reason in ("lost", "sick", "driver_lost")
                log.log(
                    logging.WARNING if unasked or event.killed else logging.INFO,
                    "browser closed",
                    browser=event.browser_id,
                    engine=event.engine,
                    reason=event.reason,
                    killed=event.killed,
                    age=round(event.age, 1),
                    served=event.served,
                )
            case _:
                pass  # leases are many: they are counted, not logged

    return pool.events.subscribe(heard)
