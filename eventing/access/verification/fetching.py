"""Fetching of documents from foreign issuers, with bounds on the response and without access to internal addresses.

The name is resolved once, every resolved address is checked, and the connection uses a checked one, while TLS and the
Host header use the name: later changes of the DNS answer have no effect. Redirects are not followed, proxies of the
environment not used. The total time is bounded, so a server that sends a byte a second gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
from dataclasses import dataclass

import httpx

from eventing.access.rules.jwks import BYTES_MAX
from eventing.access.rules.policy_issuers import is_address
from eventing.core.container import per_process

FETCH_S = 5.0  # bound: seconds of a whole fetch; the fetch fails
ADDRESSES_TRIED_MAX = 3
MAX_AGE_S = (60, 86_400)  # how long an answer is fresh, whatever its Cache-Control says
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?([0-9]{1,9})", re.IGNORECASE)
_CACHE_NONE = re.compile(r"(?:^|[,\s])no-(?:store|cache)", re.IGNORECASE)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class FetchFailed(Exception):
    """No document was received; the message is a sentence for the operator."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document, and the seconds for which it is fresh."""

    content: bytes
    max_age_s: int


def fetch(url: str, *, private: bool, fetch_s: float = FETCH_S, context: ssl.SSLContext | None = None) -> Fetched:
    """Fetch `url`. Blocks for at most about `fetch_s`, and the time of the resolver; never call it on an event loop.

    Args:
        private: whether addresses of private networks and of this machine may be called, and http on this machine.
        context: TLS context; None for the certificate authorities of httpx.

    Raises FetchFailed.
    """
    if not is_address(url):
        raise FetchFailed("The address is not an https address.")
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:  # resembles an IP address and is not one
        raise FetchFailed("The address is not callable.") from None
    if parsed.scheme != "https" and not private:
        raise FetchFailed("Issuers are called by https only.")
    port = parsed.port or (443 if parsed.scheme == "https" else 80)
    addresses = _checked(_resolved(host_of(parsed), port), parsed.scheme, private)
    try:
        return asyncio.run(_get(parsed, addresses, port, fetch_s, context or tls_context()))
    except TimeoutError:
        raise FetchFailed(f"No complete answer within {fetch_s:g} s.") from None
    except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
        raise FetchFailed(f"The issuer cannot be reached ({type(error).__name__}).") from None


def host_of(url: httpx.URL) -> str:
    """Return the host's name for DNS, TLS and HTTP: ASCII. `url.host` shows the letters of an `xn--` name instead, and
    raises for an invalid one."""
    return url.raw_host.decode("ascii")


def host_field(url: httpx.URL) -> str:
    """Return the Host field of a request to `url`."""
    host = host_of(url)
    name = f"[{host}]" if ":" in host else host
    return name if url.port is None else f"{name}:{url.port}"


def is_public(address: Address) -> bool:
    """Return True if an address is on the public internet, also when embedded in an address of another kind."""
    inner = _unwrapped(address)
    if isinstance(inner, ipaddress.IPv6Address) and inner.teredo is not None:
        return False
    return inner.is_global and not (inner.is_multicast or inner.is_reserved or inner.is_unspecified)


def is_private(address: Address) -> bool:
    """Return True if an address that is not public may be called where private networks are allowed."""
    inner = _unwrapped(address)
    return not (inner.is_link_local or inner.is_multicast or inner.is_unspecified)


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 one (mapped, 6to4, NAT64); else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address in _NAT64:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address


def _resolved(host: str, port: int) -> list[Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise FetchFailed("The issuer's name cannot be resolved.") from None
    return list(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


def _checked(addresses: list[Address], scheme: str, private: bool) -> list[Address]:
    """Return the addresses if all of them may be called. One inadmissible address refuses all: mixed answers are an
    attack or a mistake."""
    for address in addresses:
        if scheme != "https" and not address.is_loopback:
            raise FetchFailed("http is allowed for this machine only.")
        if not is_public(address) and not (private and is_private(address)):
            raise FetchFailed(
                "The issuer's name resolves to an address that is not public (HERALD_ALLOW_PRIVATE_ISSUERS)."
            )
    if not addresses:
        raise FetchFailed("The issuer's name has no address.")
    return addresses


async def _get(url: httpx.URL, addresses: list[Address], port: int, fetch_s: float, context: ssl.SSLContext) -> Fetched:
    """Request from the first address that accepts the connection."""
    tried = addresses[:ADDRESSES_TRIED_MAX]
    timeout = httpx.Timeout(fetch_s, connect=fetch_s / len(tried))
    async with (
        asyncio.timeout(fetch_s),
        httpx.AsyncClient(trust_env=False, verify=context, follow_redirects=False, timeout=timeout) as client,
    ):
        for address in tried[:-1]:
            try:
                return await _ask(client, url, address, port)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await _ask(client, url, tried[-1], port)


async def _ask(client: httpx.AsyncClient, url: httpx.URL, address: Address, port: int) -> Fetched:
    headers = {
        "Host": host_field(url),
        "Accept": "application/json",
        "Accept-Encoding": "identity",  # a compressed answer could be small to receive and huge to decompress
        "User-Agent": "Herald",
    }
    request = client.build_request(
        "GET",
        url.copy_with(host=str(address), port=port),
        headers=headers,
        extensions={"sni_hostname": host_of(url)} if url.scheme == "https" else None,
    )
    response = await client.send(request, stream=True)
    try:
        return await _read(response)
    finally:
        await response.aclose()


async def _read(response: httpx.Response) -> Fetched:
    if response.is_redirect:
        raise FetchFailed("The issuer answers with a redirect; redirects are not followed.")
    if response.status_code != 200:
        raise FetchFailed(f"The issuer answers with status {response.status_code}.")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise FetchFailed("The issuer answers with an encoding that was not requested.")
    parts, size = [], 0
    async for part in response.aiter_raw():
        size += len(part)
        if size > BYTES_MAX:
            raise FetchFailed(f"The answer is longer than {BYTES_MAX} bytes.")
        parts.append(part)
    return Fetched(b"".join(parts), _max_age_s(response.headers.get("Cache-Control", "")))


def _max_age_s(cache_control: str) -> int:
    low, high = MAX_AGE_S
    found = _MAX_AGE.search(cache_control)
    if found is None or _CACHE_NONE.search(cache_control):
        return low
    return min(max(int(found[1]), low), high)


@per_process
def tls_context() -> ssl.SSLContext:
    """Made once: to load the certificates takes 20 ms."""
    return httpx.create_ssl_context(trust_env=False)
