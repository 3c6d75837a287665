"""Addresses of endpoints: which URLs are taken, and which resolved addresses may be connected to. Pure.

A host is a DNS name, or an IP address in its one canonical form. Other forms that resolvers and libraries read as an
address (decimal, octal, hexadecimal, fewer than four parts) are refused as text, and whatever a name resolves to is
checked again on the address that is connected to.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from eventing.core.container import memoized
from eventing.core.errors import InvalidRequest

URL_CHARS_MAX = 2048  # bound: characters of an endpoint's URL; the request is refused
_HOST = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII
)
_REST = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*", re.ASCII)
_NAT64 = ip_network("64:ff9b::/96")
_DEFAULT_PORTS = {"https": 443, "http": 80}

IpAddress = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class EndpointUrl:
    """A URL taken apart.

    Attributes:
        host: ASCII name or address, in lower case, without brackets.
        target: path and query, as sent in the request line.
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def is_tls(self) -> bool:
        """True for https."""
        return self.scheme == "https"

    @property
    def host_field(self) -> str:
        """The Host field of a request."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _DEFAULT_PORTS[self.scheme] else f"{name}:{self.port}"

    @property
    def shown(self) -> str:
        """The URL for people and events: without the query, which may have a token in it."""
        path, question, _ = self.target.partition("?")
        return f"{self.scheme}://{self.host_field}{path}{question and '?…'}"


def endpoint_url(text: str, *, ports: Collection[int], private: bool, member: str = "deliver.url") -> EndpointUrl:
    """Parse an endpoint's URL.

    Args:
        member: name of the URL in refusals.
        ports: the ports that endpoints may have.
        private: whether http and addresses of private networks are taken.

    Raises InvalidRequest.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidRequest(f"{member} is not a URL.") from None
    if len(text) > URL_CHARS_MAX or parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise InvalidRequest(f"{member} is an https URL of at most {URL_CHARS_MAX} characters.")
    if parts.scheme == "http" and not private:
        raise InvalidRequest(f"{member} must be an https URL; http is taken where HERALD_PUSH_PRIVATE is set.")
    if "@" in parts.netloc or parts.fragment or "#" in text:
        raise InvalidRequest(f"{member} has neither a user nor a fragment; use `headers` or `secret` for credentials.")
    host = _host(parts.hostname, private, member)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not _REST.fullmatch(target):
        raise InvalidRequest(f"{member} has characters that must be percent-encoded.")
    found = EndpointUrl(parts.scheme, host, port if port is not None else _DEFAULT_PORTS[parts.scheme], target)
    if found.port not in ports:
        raise InvalidRequest(f"Endpoints at port {found.port} are not called here (HERALD_PUSH_PORTS).")
    return found


def _host(host: str, private: bool, member: str) -> str:
    name = host.lower().rstrip(".")
    try:
        address = ip_address(name)
    except ValueError:
        if not _HOST.fullmatch(name):
            raise InvalidRequest(
                f"The host of {member} is a DNS name in ASCII, or an IP address in its usual form."
            ) from None
        return name
    if str(address) != name or not may_call(address, private=private):
        raise InvalidRequest(f"The address of {member} is not a public one.")
    return name


def may_call(address: IpAddress, *, private: bool) -> bool:
    """Return True if endpoints at this address may be called.

    Args:
        private: whether private networks and this machine may be; link-local ones, with the metadata services of clouds,
            never may.
    """
    inner = _unwrapped(address)
    if isinstance(inner, IPv6Address) and (inner.teredo is not None or inner in _NAT64):
        return False
    if inner.is_link_local or inner.is_multicast or inner.is_unspecified or int(inner) == 0xFFFFFFFF:
        return False
    return private or (inner.is_global and not inner.is_reserved)


def _unwrapped(address: IpAddress) -> IpAddress:
    """Return the IPv4 address inside an IPv6 one (mapped, 6to4, NAT64); else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address in _NAT64:
        inner = IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address


@memoized(maxsize=4)
def ports_parse(text: str) -> frozenset[int]:
    """Parse ports and ranges of ports, separated by commas: `443,8443` or `443,8000-8999`. Raises ValueError."""
    found: set[int] = set()
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        begin, end = int(low), int(high) if dash else int(low)
        if not 1 <= begin <= end <= 65_535:
            raise ValueError(f"{part} is not a port")
        found.update(range(begin, end + 1))
    return frozenset(found)
