"""Resolution of endpoints' names, with every address checked before a connection is made to exactly that address.

The check is made at each new connection on the address that is then connected to, so an answer of the DNS that changes
between two connections gains nothing. One inadmissible address among several refuses all of them.
"""

from __future__ import annotations

import asyncio
import socket
import time
from ipaddress import ip_address

import psutil

from eventing.core.container import per_process
from eventing.subscriptions.push.rules.addresses import EndpointUrl, IpAddress, may_call
from eventing.subscriptions.push.rules.verdicts import NoAnswer

RESOLVE_S = 5.0  # bound: seconds of one resolution; the attempt fails
ADDRESSES_TRIED_MAX = 3  # bound: addresses of a name that are tried for one connection; the attempt fails
OWN_KEPT_S = 60.0


class Unreached(Exception):
    """No connection was made, or it gave no answer.

    Args:
        reason: of NoAnswer.
    """

    def __init__(self, reason: NoAnswer, address: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.address = address


class _OwnAddresses:
    """Addresses of this machine's interfaces, read again after OWN_KEPT_S."""

    def __init__(self) -> None:
        self._at = float("-inf")
        self._found: frozenset[str] = frozenset()

    def __contains__(self, address: str) -> bool:
        if time.monotonic() - self._at > OWN_KEPT_S:
            found = [one.address.partition("%")[0] for card in psutil.net_if_addrs().values() for one in card]
            self._found, self._at = frozenset(found), time.monotonic()
        return address in self._found


_own = per_process(_OwnAddresses)


async def checked_addresses(url: EndpointUrl, *, private: bool, own_port: int) -> list[str]:
    """Return the addresses that may be connected to for this URL, in the resolver's order.

    Args:
        private: whether addresses of private networks and of this machine may be called.
        own_port: the port of this domain's gateway, which no endpoint may have on this machine.

    Raises Unreached.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await loop.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    except (TimeoutError, OSError, UnicodeError):
        raise Unreached(NoAnswer.RESOLUTION) from None
    addresses = list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))
    if not addresses:
        raise Unreached(NoAnswer.RESOLUTION)
    for address in addresses:
        if not _admitted(ip_address(address), url.port, private, own_port):
            raise Unreached(NoAnswer.ADDRESS, address)
    return addresses[:ADDRESSES_TRIED_MAX]


def _admitted(address: IpAddress, port: int, private: bool, own_port: int) -> bool:
    if not may_call(address, private=private):
        return False
    own = address.is_loopback or str(address) in _own()
    return not own or (private and port != own_port)
