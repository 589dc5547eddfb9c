"""Where a URL comes in: how it may be spelt, and which addresses are not of the public internet."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.guard.addresses import forbidden
from api.guard.urls import MAX_LENGTH, EgressPolicy, Url, parse_url
from arachne_pool import BadRequest, BlockedByPolicy, TargetFailed

PUBLIC = "93.184.216.34"


async def resolve_public(_host: str, _port: int) -> list[str]:
    return [PUBLIC]


def policy(*allow: str, local: bool = False) -> EgressPolicy:
    return EgressPolicy(allow, local=local, resolve=resolve_public)


def check(text: str, one: EgressPolicy | None = None) -> None:
    asyncio.run((one or policy()).check(parse_url(text)))


# Spelling -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://example.com", Url("http://example.com/", "http", "example.com", 80)),
        ("HTTPS://EXAMPLE.com:443/A?b#c", Url("https://example.com/A?b#c", "https", "example.com", 443)),
        ("http://[::1]:8001/x", Url("http://[::1]:8001/x", "http", "::1", 8001)),
        (
            "http://bücher.example/ü",
            Url("http://xn--bcher-kva.example/%C3%BC", "http", "xn--bcher-kva.example", 80),
        ),
        ("http://0x7f.1/", Url("http://127.0.0.1/", "http", "127.0.0.1", 80)),
        (
            "http://127.0.0.1:80\\@example.com/",
            Url("http://127.0.0.1/@example.com/", "http", "127.0.0.1", 80),
        ),
    ],
)
def test_a_url_is_read_as_a_browser_reads_it(text: str, expected: Url) -> None:
    assert parse_url(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("example.com/x", "has no scheme: write http://"),
        ("localhost:8000/x", "has no scheme: write http://"),
        ("//example.com/", "has no scheme"),
        ("http:/etc", "lacks the // after http"),
        ("https:example.com", "lacks the // after https"),
        ("http:///x", "has no host"),
        ("http://", "has no host"),
        ("ftp://example.com/", "has the scheme 'ftp': only http and https"),
        ("javascript:alert(1)", "has the scheme javascript: only http and https"),
        (" http://example.com/", "begins or ends with a blank"),
        ("http://example.com/ ", "begins or ends with a blank"),
        ("ht\ttp://example.com/", "control characters"),
        ("http://exam\nple.com/", "control characters"),
        ("http://exa mple.com/", "is not a URL that a browser can open"),
        ("http://example.com:99999/", "the port (0 to 65535)"),
        ("http://256.1.1.1/", "is not a URL"),
        ("http://user:secret@example.com/", "user name or password in the URL is not taken"),
        ("http://example.com/" + "x" * MAX_LENGTH, f"at most {MAX_LENGTH} are taken"),
        ("http://example.com/" + "ü" * (MAX_LENGTH // 2), f"at most {MAX_LENGTH} are taken"),
    ],
)
def test_a_wrong_url_names_the_field_and_the_fix(text: str, said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_url(text, field="target.url")
    assert caught.value.field == "target.url"
    assert caught.value.message.startswith("target.url: ")
    assert said in caught.value.message
    assert "secret" not in caught.value.message
    assert len(caught.value.message) < 400


@given(st.text(max_size=60))
def test_any_text_is_an_http_url_or_a_bad_request(text: str) -> None:
    try:
        url = parse_url(text)
    except BadRequest:
        return
    assert url.scheme in ("http", "https")
    assert url.host
    assert parse_url(url.href) == url


# Addresses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        (PUBLIC, None),
        ("2606:4700::1111", None),
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("::", "unspecified"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("10.0.0.5", "private"),
        ("172.31.255.255", "private"),
        ("172.32.0.1", None),
        ("192.168.1.1", "private"),
        ("fd00::1", "unique_local"),
        ("fec0::1", "site_local"),
        ("169.254.1.1", "link_local"),
        ("fe80::1", "link_local"),
        ("100.64.0.1", "shared"),
        ("100.128.0.1", None),
        ("198.18.0.1", "benchmark"),
        ("192.0.2.1", "documentation"),
        ("2001:db8::1", "documentation"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("192.0.0.1", "reserved"),
        ("4000::1", "reserved"),
        ("169.254.169.254", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("::ffff:127.0.0.1", "loopback"),
        (f"::ffff:{PUBLIC}", None),
        ("::ffff:169.254.169.254", "metadata"),
        ("::127.0.0.1", "loopback"),
        (f"::{PUBLIC}", "reserved"),
        ("::ffff:0:127.0.0.1", "loopback"),
        ("64:ff9b::10.0.0.1", "private"),
        (f"64:ff9b::{PUBLIC}", None),
        ("64:ff9b::169.254.169.254", "metadata"),
        (f"64:ff9b:1::{PUBLIC}", "reserved"),
        ("2002:7f00:1::", "loopback"),
        ("2002:a00:5::1", "private"),
        ("2001:0:4136:e378:8000:63bf:80ff:fffe", "loopback"),  # Teredo: the client is 127.0.0.1, inverted
        ("2001:0:7f00:1:8000:63bf:a247:28dd", "loopback"),  # Teredo: so is the server
    ],
)
def test_each_address_has_its_rule(address: str, rule: str | None) -> None:
    assert forbidden(ip_address(address)) == rule


@given(st.ip_addresses(v=4))
def test_what_python_calls_not_global_is_forbidden(address: IPv4Address) -> None:
    if not address.is_global or address.is_multicast:
        assert forbidden(address) is not None
    mapped = IPv6Address(f"::ffff:{address}")
    assert forbidden(mapped) == forbidden(address)
    assert (forbidden(IPv6Address(f"64:ff9b::{address}")) is None) == (forbidden(address) is None)


@given(st.ip_addresses(v=6))
def test_what_python_calls_not_global_is_forbidden_in_ipv6(address: IPv6Address) -> None:
    if not address.is_global or address.is_multicast:
        assert forbidden(address) is not None or address.ipv4_mapped or address.sixtofour


@st.composite
def spelt(draw: st.DrawFn) -> tuple[str, IPv4Address]:
    """An address of this machine, in one of the ways to write it which browsers read all alike."""
    address = draw(st.ip_addresses(v=4, network="127.0.0.0/8"))
    a, b, c, d = address.packed
    parts = draw(
        st.sampled_from([(a, b, c, d), (a, b, c << 8 | d), (a, b << 16 | c << 8 | d), (int(address),)])
    )
    forms = st.sampled_from(["{}", "0x{:x}", "0X{:X}", "0{:o}", "000{:o}", "0x000{:x}"])
    return ".".join(draw(forms).format(part) for part in parts), IPv4Address(address)


@given(spelt())
def test_no_spelling_of_a_loopback_address_gets_by(given: tuple[str, IPv4Address]) -> None:
    text, address = given
    url = parse_url(f"http://{text}:8001/")
    assert url.host == str(address)
    with pytest.raises(BlockedByPolicy) as caught:
        asyncio.run(policy().check(url))
    assert caught.value.rule == "loopback"


@pytest.mark.parametrize(
    "host", ["１２７.0.0.1", "127。0。0。1", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "a.localhost"]
)
def test_nor_do_other_spellings_of_this_machine(host: str) -> None:
    with pytest.raises(BlockedByPolicy):
        check(f"http://{host}/")


# Policy ---------------------------------------------------------------------------------------------


def test_the_refusal_names_the_rule_and_the_setting() -> None:
    with pytest.raises(BlockedByPolicy) as caught:
        check("http://127.0.0.1:8002/")
    assert caught.value.rule == "loopback"
    assert "rule loopback" in caught.value.message
    assert "ARACHNE_EGRESS_ALLOW=127.0.0.1:8002" in caught.value.message


@pytest.mark.parametrize("url", ["http://127.0.0.1:8002/", "http://[::1]:8002/", "http://10.1.2.3/"])
def test_what_the_refusal_says_to_set_does_permit_it(url: str) -> None:
    with pytest.raises(BlockedByPolicy) as caught:
        check(url)
    check(url, policy(caught.value.message.rpartition("=")[2]))


def test_an_entry_permits_its_port_alone() -> None:
    one = policy("127.0.0.1:8001")
    check("http://127.0.0.1:8001/", one)
    with pytest.raises(BlockedByPolicy):
        check("http://127.0.0.1:8002/", one)


def test_a_network_permits_every_port() -> None:
    check("http://10.1.2.3:9999/", policy("10.1.0.0/16"))
    with pytest.raises(BlockedByPolicy):
        check("http://10.2.2.3:9999/", policy("10.1.0.0/16"))


@pytest.mark.parametrize("url", ["http://intranet.example:8080/", "http://INTRANET.example.:8080/"])
async def test_a_name_is_permitted_whatever_it_leads_to(url: str) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["10.0.0.7"]

    await EgressPolicy(["Intranet.example:8080"], resolve=resolve).check(parse_url(url))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://[fd00::1]/", "http://192.168.0.1/", "http://100.64.0.1/"]
)
def test_the_command_line_may_visit_this_machine_and_private_networks(url: str) -> None:
    check(url, policy(local=True))


@pytest.mark.parametrize("url", ["http://224.0.0.1/", "http://0.0.0.0/", "http://169.254.3.3/"])
def test_but_nothing_else_that_is_not_public(url: str) -> None:
    with pytest.raises(BlockedByPolicy):
        check(url, policy(local=True))


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",
        "http://[fd00:ec2::254]/",
        "http://metadata.google.internal/",
        "http://metadata.google.internal./",
        "http://100.100.100.200/",
    ],
)
@pytest.mark.parametrize(
    "allow", [(), ("0.0.0.0/0", "::/0", "169.254.169.254:80", "metadata.google.internal:80")]
)
def test_where_clouds_hand_out_credentials_nobody_goes(url: str, allow: tuple[str, ...]) -> None:
    with pytest.raises(BlockedByPolicy) as caught:
        check(url, policy(*allow, local=True))
    assert caught.value.rule == "metadata"


async def test_a_name_with_a_scoped_address_is_judged_by_the_address() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["fe80::1%eth0"]

    with pytest.raises(BlockedByPolicy) as caught:
        await EgressPolicy(resolve=resolve).check(parse_url("http://box.example/"))
    assert caught.value.rule == "link_local"


async def test_a_name_without_an_address_is_a_dns_failure() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return []

    with pytest.raises(TargetFailed) as caught:
        await EgressPolicy(resolve=resolve).check(parse_url("http://nowhere.example/"))
    assert caught.value.reason == "dns"


async def test_this_machines_own_resolver_is_asked_by_default() -> None:
    with pytest.raises(BlockedByPolicy) as caught:
        await EgressPolicy().check(parse_url("http://localhost:8001/"))
    assert caught.value.rule == "loopback"
