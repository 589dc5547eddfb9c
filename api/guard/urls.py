"""The check at the door: how a URL is spelt, and whether policy lets us go where it leads.

A name may resolve otherwise a moment later, and a page goes where it likes: the egress proxy holds
the same policy for every connection. This check answers early, with a reason, before a browser is taken.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

import ada_url

from api.guard.addresses import METADATA_NAMES, Address, Network, forbidden, plain
from arachne_pool import BadRequest, BlockedByPolicy, TargetFailed

MAX_LENGTH = 8 * 1024
"""Bytes of a URL, in UTF-8. Servers in use refuse longer ones themselves."""

PORTS = {"http": 80, "https": 443}
SETTING = "ARACHNE_EGRESS_ALLOW"
RESOLVE_TIMEOUT = 10.0
LOCAL_RULES = frozenset({"loopback", "private", "unique_local", "shared"})
"""What ``EgressPolicy(local=True)`` permits besides the public internet."""

_OPAQUE = frozenset({"file", "data", "javascript", "about", "blob", "view-source", "mailto", "ftp", "chrome"})
_SHOWN = 120

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Takes a name and a port, gives all its addresses as text; raises OSError when there are none."""


@dataclass(frozen=True, slots=True)
class Url:
    """An http or https URL as a browser reads it (WHATWG). ``host`` of IPv6 has no brackets."""

    href: str
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return self.href

    @property
    def name(self) -> str:
        """The host without the dot that a name may end with."""
        return self.host.removesuffix(".")

    @property
    def netloc(self) -> str:
        """Host and port, as the setting takes them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.name}:{self.port}"


def parse_url(text: str, *, field: str = "url") -> Url:
    """Read a URL that somebody gave us. Raises BadRequest that names ``field`` and the fix."""

    def wrong(what: str) -> BadRequest:
        return BadRequest(f"{field}: {what}", field=field)

    if not text.strip():
        raise wrong("it is empty: give an address like https://example.com/")
    if any(ord(c) < 0x20 or ord(c) == 0x7F for c in text):
        # A browser drops tabs and line ends wherever they stand: `fi<tab>le:` would read as `file:`.
        raise wrong(f"{_shown(text)} has control characters (tab, line end or kin): take them out")
    if text != text.strip():
        raise wrong(f"{_shown(text)} begins or ends with a blank: take it away")
    length = len(text.encode("utf-8", "surrogatepass"))
    if length > MAX_LENGTH:
        raise wrong(f"it is {length} bytes long, at most {MAX_LENGTH} are taken: shorten it")
    scheme, colon, rest = text.partition(":")
    # What stands before the first colon is a scheme only where `//` follows: `host:8000/x` has none.
    if not colon or not rest.startswith("//"):
        raise wrong(_no_scheme(text, scheme.lower() if colon else ""))
    if scheme.lower() not in PORTS:
        raise wrong(f"{_shown(text)} has the scheme {_shown(scheme)}: only http and https are visited")
    if not rest[2:] or rest[2] in "/\\?#":
        raise wrong(f"{_shown(text)} has no host: give one, as in https://example.com/")
    try:
        url = ada_url.URL(text)
    except (ValueError, UnicodeError) as error:
        raise wrong(
            f"{_shown(text)} is not a URL that a browser can open: check the host, the port (0 to 65535) "
            "and characters such as blanks in them"
        ) from error
    if url.username or url.password:
        raise wrong("a user name or password in the URL is not taken: leave out what stands before the @")
    scheme = url.protocol.removesuffix(":")
    host = url.hostname.removeprefix("[").removesuffix("]")
    return Url(url.href, scheme, host, int(url.port) if url.port else PORTS[scheme])


def _no_scheme(text: str, scheme: str) -> str:
    if scheme in PORTS:
        return f"{_shown(text)} lacks the // after {scheme}: write {scheme}://host/path"
    if scheme in _OPAQUE:
        return f"{_shown(text)} has the scheme {scheme}: only http and https are visited"
    return f"{_shown(text)} has no scheme: write http:// or https:// before it"


def _shown(text: str) -> str:
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return ascii(cut)


@dataclass(frozen=True, slots=True)
class _Allowed:
    """One entry of the setting: a host with a port, or a network with any port."""

    host: str = ""
    port: int = 0
    network: Network | None = None

    def fits(self, url: Url, address: Address) -> bool:
        if self.network is not None:
            return address.version == self.network.version and address in self.network
        return url.port == self.port and self.host in (url.name, str(address))


class EgressPolicy:
    """Where the service may go: the public internet, and what the setting names besides.

    ``allow``: entries ``host:port`` (``[::1]:8000`` for IPv6) or CIDR (``10.1.0.0/16``); a bad one is a
    ValueError that names it. ``local``: this machine and private networks too, as the command line in
    its own process may. Addresses where clouds hand out credentials are never visited, by nobody.
    """

    def __init__(
        self, allow: Sequence[str] = (), *, local: bool = False, resolve: Resolver | None = None
    ) -> None:
        self.allow = tuple(allow)
        self.local = local
        self._allowed = tuple(_entry(text) for text in self.allow)
        self._resolve = resolve or resolve_name

    def __repr__(self) -> str:
        return f"<egress: public{', local' if self.local else ''}{''.join(f', {a}' for a in self.allow)}>"

    async def check(self, url: Url) -> None:
        """Raise BlockedByPolicy when any address of the host is forbidden, TargetFailed when it has none."""
        if url.name in METADATA_NAMES:
            raise _metadata(url, url.name)
        for address in await self._addresses(url):
            self._check(url, address)

    async def _addresses(self, url: Url) -> list[Address]:
        try:
            return [plain(ip_address(url.host))]
        except ValueError:
            pass  # a name
        if url.name.endswith(".localhost"):
            # Browsers take these for this machine without asking anybody (RFC 6761); so must we.
            return [ip_address("127.0.0.1")]
        try:
            async with asyncio.timeout(RESOLVE_TIMEOUT):
                texts = await self._resolve(url.host, url.port)
            # A scope (fe80::1%eth0) says which interface; what it is stays the same.
            found = {plain(ip_address(text.partition("%")[0])) for text in texts}
        except TimeoutError as error:
            raise _unresolved(url, f"no answer within {RESOLVE_TIMEOUT:g} s") from error
        except (OSError, UnicodeError) as error:
            raise _unresolved(url, str(getattr(error, "strerror", None) or error)) from error
        if not found:
            raise _unresolved(url, "it has no address")
        return sorted(found, key=lambda address: (address.version, int(address)))

    def _check(self, url: Url, address: Address) -> None:
        rule = forbidden(address)
        if rule is None:
            return
        if rule == "metadata":
            raise _metadata(url, str(address))
        if (self.local and rule in LOCAL_RULES) or any(e.fits(url, address) for e in self._allowed):
            return
        where = url.host if str(address) == url.host else f"{url.host} leads to {address}, which"
        raise BlockedByPolicy(
            f"{where} is not on the public internet (rule {rule}): to permit it, set {SETTING}={url.netloc}",
            rule=rule,
        )


async def resolve_name(host: str, port: int) -> list[str]:
    """All addresses of a name, as this machine's resolver has them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for _, _, _, _, address in found]


def _metadata(url: Url, what: str) -> BlockedByPolicy:
    return BlockedByPolicy(
        f"{url.host}: {what} is where clouds hand out a machine's credentials (rule metadata): it is never "
        "visited, and no setting permits it",
        rule="metadata",
    )


def _unresolved(url: Url, why: str) -> TargetFailed:
    return TargetFailed(f"the name {_shown(url.host)} did not resolve ({why}): check it", reason="dns")


def _entry(text: str) -> _Allowed:
    """Read one entry of the setting."""
    if "/" in text:
        try:
            return _Allowed(network=ip_network(text.strip(), strict=True))
        except ValueError as error:
            raise ValueError(f"{text!r} is not a network ({error}): write one like 10.1.0.0/16") from error
    host, colon, port = text.strip().rpartition(":")
    bare = host.startswith("[") or ":" not in host
    if not (colon and host and bare and port.isascii() and port.isdecimal() and 0 < int(port) <= 65535):
        raise ValueError(
            f"{text!r} is neither host:port nor a network: write it like intranet.example:8080, "
            "[::1]:8080 or 10.1.0.0/16"
        )
    try:
        url = ada_url.URL(f"http://{host}:{port}/")
    except ValueError as error:
        raise ValueError(f"{text!r} has no proper host: write it like intranet.example:8080") from error
    return _Allowed(host=url.hostname.removeprefix("[").removesuffix("]"), port=int(port))
