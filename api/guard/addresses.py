"""Which addresses are not of the public internet, and by which rule: pure, no look-ups."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

METADATA_NAMES = frozenset({"metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"})
METADATA = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Azure, Google, DigitalOcean, OpenStack
        "169.254.170.2",  # AWS ECS tasks
        "169.254.170.23",  # AWS EKS pods
        "168.63.129.16",  # Azure's wire server
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle, the old one
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",  # Google on IPv6
    )
)
"""Where clouds hand out a machine's credentials: never visited, whatever else is allowed."""

# The first rule that fits gives the name; so the narrow ones stand before the wide ones.
# IANA's special-purpose registries (RFC 6890 and what followed it), and what is embedded in IPv6.
_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("unspecified", ("0.0.0.0/8", "::/128")),
    ("loopback", ("127.0.0.0/8", "::1/128")),
    ("private", ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")),
    ("unique_local", ("fc00::/7",)),
    ("site_local", ("fec0::/10",)),
    ("link_local", ("169.254.0.0/16", "fe80::/10")),
    ("shared", ("100.64.0.0/10",)),
    ("benchmark", ("198.18.0.0/15", "2001:2::/48")),
    (
        "documentation",
        ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    ),
    ("multicast", ("224.0.0.0/4", "ff00::/8")),
    ("reserved", ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "240.0.0.0/4")),
    ("discard_only", ("100::/64", "100:0:0:1::/64")),
    ("reserved", ("2001::/23", "5f00::/16")),
)
_NETWORKS: tuple[tuple[str, Network], ...] = tuple(
    (rule, ip_network(text)) for rule, texts in _RULES for text in texts
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")

_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("::ffff:0:0:0/96")  # RFC 2765's IPv4-translated
_COMPATIBLE = IPv6Network("::/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_6TO4 = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_TRANSPARENT = (_MAPPED, _NAT64, _6TO4)
_LOW_32 = 0xFFFF_FFFF


def forbidden(address: Address) -> str | None:
    """The rule that keeps this address out (``loopback``, ``private``, ...); None when it is public.

    An IPv4 address inside an IPv6 one counts as itself: a translator on the way would connect to it.
    """
    inner = tuple(_embedded(address))
    if any(one in METADATA for one in (address, *inner)):
        return "metadata"
    if rule := next((rule for one in inner if (rule := _rule(one))), None):
        return rule
    if inner:
        # A public address behind one of these prefixes is as public as it was; the other forms are
        # for local use or obsolete.
        return None if any(address in form for form in _TRANSPARENT) else "reserved"
    rule = _rule(address)
    if rule is None and isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return "reserved"  # nothing else of IPv6 is handed out
    return rule


def plain(address: Address) -> Address:
    """The IPv4 address that an IPv4-mapped one is on every system; any other as it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _rule(address: Address) -> str | None:
    for rule, network in _NETWORKS:
        if address.version == network.version and address in network:
            return rule
    return None


def _embedded(address: Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that stand in an IPv6 address."""
    if isinstance(address, IPv4Address) or address in (IPv6Address("::"), IPv6Address("::1")):
        return
    number = int(address)
    if any(address in form for form in (_MAPPED, _TRANSLATED, _COMPATIBLE, _NAT64, _NAT64_LOCAL)):
        yield IPv4Address(number & _LOW_32)
    if address in _6TO4:
        yield IPv4Address((number >> 80) & _LOW_32)
    if address in _TEREDO:
        yield IPv4Address((number >> 64) & _LOW_32)  # its server
        yield IPv4Address((number & _LOW_32) ^ _LOW_32)  # its client, stored inverted
