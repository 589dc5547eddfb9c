"""What Playwright's errors mean in our words; Chromium's and Firefox's network errors alike."""

from __future__ import annotations

import re
from collections.abc import Sequence

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from arachne_pool.errors import (
    ArachneError,
    BadRequest,
    BlockedByPolicy,
    BrowserLost,
    PageCrashed,
    TargetFailed,
    VisitError,
    VisitTimeout,
)

# First match wins. Firefox's errors carry NS_ERROR_* on the second line: the whole text is searched.
_NETWORK: Sequence[tuple[str, str]] = (
    ("dns", r"ERR_NAME_|ERR_DNS_|ERR_ICANN_NAME|NS_ERROR_UNKNOWN_HOST|NS_ERROR_UNKNOWN_PROXY_HOST"),
    ("tls", r"ERR_CERT_|ERR_SSL_|ERR_BAD_SSL|SSL_ERROR_|SEC_ERROR_|MOZILLA_PKIX_|NS_ERROR_NET_.*SSL"),
    ("redirects", r"ERR_TOO_MANY_REDIRECTS|NS_ERROR_REDIRECT_LOOP"),
    ("refused", r"ERR_CONNECTION_REFUSED|ERR_ADDRESS_UNREACHABLE|ERR_PROXY_|NS_ERROR_CONNECTION_REFUSED"),
    ("encoding", r"ERR_CONTENT_DECODING|NS_ERROR_INVALID_CONTENT_ENCODING|NS_ERROR_CORRUPTED_CONTENT"),
    ("truncated", r"ERR_CONTENT_LENGTH_MISMATCH|ERR_INCOMPLETE_|NS_ERROR_NET_PARTIAL_TRANSFER"),
    (
        "invalid_response",
        (
            r"ERR_INVALID_HTTP_RESPONSE|ERR_INVALID_RESPONSE|ERR_RESPONSE_HEADERS_|ERR_INVALID_CHUNKED"
            r"|ERR_HTTP2_|ERR_QUIC_|ERR_INVALID_REDIRECT|ERR_HTTP_RESPONSE_CODE_FAILURE|NS_ERROR_NET_BAD"
        ),
    ),
    (
        "reset",
        (
            r"ERR_CONNECTION_|ERR_EMPTY_RESPONSE|ERR_SOCKET_|ERR_NETWORK_CHANGED|ERR_INTERNET_DISCONNECTED"
            r"|ERR_TIMED_OUT|NS_ERROR_NET_RESET|NS_ERROR_NET_INTERRUPT|NS_ERROR_NET_EMPTY|NS_ERROR_NET_TIMEOUT"
        ),
    ),
)
_LOST = re.compile(
    r"browser has been closed|Browser closed|Target page, context or browser has been closed"
    r"|Connection closed|Target closed|Browser has been disconnected|browser has disconnected"
)
_CRASHED = re.compile(r"Page crashed|Target crashed|page has crashed")
_BLOCKED = re.compile(r"ERR_UNSAFE_PORT|NS_ERROR_PORT_ACCESS_NOT_ALLOWED|ERR_BLOCKED_BY_CLIENT")
_BAD_OPTION = re.compile(
    r"[Ii]nvalid timezone|[Ii]nvalid locale|is an invalid|expected (string|number|integer|boolean|object)"
    r"|[Ii]nvalid URL|[Ii]nvalid header|[Ii]nvalid cookie|[Uu]nsupported proxy"
)


def translate(error: BaseException, *, stage: str = "navigate") -> ArachneError:
    """One of our errors for any error that came out of Playwright; ours come back as they are.

    The original stays reachable as ``__cause__`` when the result is raised ``from`` it.
    """
    if isinstance(error, ArachneError):
        return error
    text = str(error) or type(error).__name__
    line = text.strip().splitlines()[0]
    if _CRASHED.search(text):
        return PageCrashed("the page's process died", stage=stage)
    if _LOST.search(text):
        return BrowserLost(f"the browser ended during the work ({line})", stage=stage)
    if isinstance(error, (PlaywrightTimeout, TimeoutError)):
        return VisitTimeout(line, stage=stage)
    if _BLOCKED.search(text):
        return BlockedByPolicy(f"the browser refuses this address ({line})", rule="browser")
    for reason, pattern in _NETWORK:
        if found := re.search(pattern, text):
            name = re.search(r"\w*" + re.escape(found[0]) + r"\w*", text)
            return TargetFailed(f"{_MEANS[reason]} ({name[0] if name else line})", reason=reason, stage=stage)
    if _BAD_OPTION.search(text):
        return BadRequest(line, field="options")
    if isinstance(error, PlaywrightError):
        return VisitError(line, stage=stage, retryable=False)
    return VisitError(f"{type(error).__name__}: {line}", stage=stage, retryable=False)


_MEANS = {
    "dns": "the site's name does not resolve",
    "tls": "the site's certificate or TLS is not accepted",
    "redirects": "the site redirects without end",
    "refused": "the site refuses the connection",
    "encoding": "the answer's compression is broken",
    "truncated": "the answer ended too early",
    "invalid_response": "the answer is not valid HTTP",
    "reset": "the connection broke",
}
