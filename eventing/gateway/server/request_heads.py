"""Checks of a request's head beyond those of the parser (RFC 9112), and log lines for refusals.

httptools checks the grammar of lines; the rules here are those that it leaves to its user: the version, exactly one
valid Host, and no transfer coding but `chunked`. Two parsers of one request that disagree about any of these can be
made to see two different requests (request smuggling).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from eventing.core.container import memoized

# bound: seconds between log lines about refused heads; the refusals in between are counted in the next line
LOG_PAUSE_S = 60.0
# Nearly all requests have one of a few values.
HOSTS_CACHED = 64  # bound: cached values of the Host field; the least recently used value is checked again
_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._~%!$&'()*+,;=-]*)(?::[0-9]{0,5})?")

log = logging.getLogger(__name__)


def fault_of(version: str, url: bytes, headers: list[tuple[bytes, bytes]], *, websocket: bool) -> str:
    """Return the reason to refuse a request with this head; empty for none.

    Args:
        version: version of HTTP, as the parser returns it, such as "1.1".
        url: the request target, as sent.
        headers: with lower-case names.
        websocket: whether the head is a WebSocket handshake.
    """
    if version != "1.1" and (version != "1.0" or websocket):
        return f"HTTP/{version} is not supported; send HTTP/1.1."
    hosts = codings = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
            if not _is_host(value):
                return "The Host field does not name a host."
        elif name == b"transfer-encoding":
            codings += 1
            if value.lower() != b"chunked":
                return "The only supported transfer coding is chunked."
    if hosts != 1 and (hosts or version == "1.1"):
        return "Send exactly one Host field."
    if codings and (codings > 1 or version == "1.0"):
        return "Send Transfer-Encoding once, and not in HTTP/1.0."
    return "" if url.isascii() else "The request target is not ASCII; percent-encode it."


@memoized(maxsize=HOSTS_CACHED)
def _is_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None


def bytes_of(url: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    """Compute the size of a head with these parts, in bytes; without the method, the version and optional whitespace."""
    return len(url) + sum([len(name) + len(value) + 4 for name, value in headers])


class RefusalLog:
    """Log of refused heads: one line at once, then at most one each LOG_PAUSE_S with the number of others, so that
    strangers cannot fill the log.

    Args:
        clock: a steady clock, seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._silent_until = float("-inf")
        self._unlogged = 0

    def refused(self, address: str, detail: str) -> None:
        """Log the refusal of an unreadable request of the client at `address`, because of `detail`."""
        now = self._clock()
        if now < self._silent_until:
            self._unlogged += 1
            return
        log.warning(
            "A request from %s was refused: %s (%d others since the last line)", address, detail, self._unlogged
        )
        self._silent_until, self._unlogged = now + LOG_PAUSE_S, 0


__all__ = ["RefusalLog", "bytes_of", "fault_of"]
