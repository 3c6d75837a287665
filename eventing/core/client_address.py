"""Client address of a request: the connection's peer address, or the address that a trusted proxy reports.

Any client can write `X-Forwarded-For`, so only entries that a trusted proxy added count. Each proxy appends the address
of its own peer on the right. The client's address is therefore the right-most entry that is not itself a trusted proxy;
a client may have invented everything to the left of that entry.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from eventing.core.errors import ConfigError

# Read from the right end; 16 full IPv6 addresses fit.
FORWARDED_CHARS_MAX = 1024  # bound: characters of `X-Forwarded-For`; entries further to the left are ignored
HOPS_MAX = 16  # bound: proxies in a row; the last proxy counts as the client
ADDRESS_CHARS_MAX = 64
NETWORKS_MAX = 64
IPV6_CLIENT_BITS = 64  # a household or host has a whole /64 (RFC 6177), and could otherwise count as 2**64 clients

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_networks(text: str) -> tuple[Network, ...]:
    """Parse networks or addresses separated by commas or spaces: `10.0.0.0/8, 127.0.0.1`. Raises ConfigError."""
    parts = text.replace(",", " ").split()
    if len(parts) > NETWORKS_MAX:
        raise ConfigError(f"HERALD_TRUSTED_PROXIES names more than {NETWORKS_MAX} networks.")
    try:
        return tuple(ipaddress.ip_network(part) for part in parts)
    except ValueError as error:
        raise ConfigError(f"HERALD_TRUSTED_PROXIES is a list of networks such as 10.0.0.0/8: {error}.") from None


def client_address(peer: str, forwarded: Sequence[str], trusted: Sequence[Network]) -> str:
    """Return the client's address, in its canonical form.

    Args:
        peer: the address of the connection's other end; empty if unknown.
        forwarded: the values of the X-Forwarded-For headers, in their order.
        trusted: networks of proxies whose headers count.
    """
    if not trusted or not forwarded:
        return peer
    address = _parse(peer)
    if address is None or not _within(address, trusted):
        return peer
    chain = ",".join(forwarded)[-FORWARDED_CHARS_MAX:].split(",")
    for entry in reversed(chain[-HOPS_MAX:]):
        before = _parse(entry)
        if before is None:  # malformed or truncated entry: the proxy that forwarded it is the last known address
            break
        address = before
        if not _within(address, trusted):
            break
    return str(address)


def address_key(address: str) -> str:
    """Return the key under which clients are counted together: an IPv4 address, or the /64 network of an IPv6 address."""
    if ":" not in address:
        return address
    parsed = _parse(address)
    if not isinstance(parsed, ipaddress.IPv6Address):
        return address if parsed is None else str(parsed)
    return str(ipaddress.ip_network((parsed, IPV6_CLIENT_BITS), strict=False))


def _parse(text: str) -> Address | None:
    """Parse an address as proxies write it (plain, `1.2.3.4:5678`, `[::1]` or `[::1]:5678`); None for anything else."""
    text = text.strip()
    if len(text) > ADDRESS_CHARS_MAX:
        return None
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def is_loopback(host: str) -> bool:
    """Return True if a host's text denotes this machine; other names do not, whatever they resolve to."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
