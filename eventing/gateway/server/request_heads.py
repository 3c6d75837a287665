"""What a request's head must be beyond what the parser checks (RFC 9112), and what becomes of the refusals' log lines.

httptools checks the grammar of lines; the rules here are those that it leaves to its user: the version, exactly one valid
Host, and no transfer coding but `chunked`. Two readers of one request that disagree about any of these can be made to see
two different requests.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import lru_cache

LOG_PAUSE_S = 60.0  # between two log lines about refused heads, however many are refused
HOSTS_CACHED = 64  # values of Host fields; nearly all requests have one of few
_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._~%!$&'()*+,;=-]*)(?::[0-9]{0,5})?")

log = logging.getLogger(__name__)


def fault_of(version: str, url: bytes, headers: list[tuple[bytes, bytes]], *, websocket: bool) -> str:
    """Why a request with this head is to be refused; empty for none.

    Args:
        version: of HTTP, as the parser gives it, such as "1.1".
        url: the request target, as sent.
        headers: with lower-case names.
        websocket: whether the head is a WebSocket handshake.
    """
    if version != "1.1" and (version != "1.0" or websocket):
        return f"HTTP/{version} is not spoken here; send HTTP/1.1."
    hosts = codings = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
            if not _is_host(value):
                return "The Host field does not name a host."
        elif name == b"transfer-encoding":
            codings += 1
            if value.lower() != b"chunked":
                return "The only transfer coding understood here is chunked."
    if hosts != 1 and (hosts or version == "1.1"):
        return "Send exactly one Host field."
    if codings and (codings > 1 or version == "1.0"):
        return "Send Transfer-Encoding once, and not in HTTP/1.0."
    return "" if url.isascii() else "The request target is not ASCII; percent-encode it."


@lru_cache(HOSTS_CACHED)
def _is_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None


def bytes_of(url: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    """The size of a head with these parts, bytes; without the method, the version and optional whitespace."""
    return len(url) + sum([len(name) + len(value) + 4 for name, value in headers])


class RefusalLog:
    """One log line about refused heads at once, then at most one each LOG_PAUSE_S that counts the others: strangers cannot
    fill the log.

    Args:
        clock: a steady clock, seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._silent_until = float("-inf")
        self._unlogged = 0

    def refused(self, address: str, detail: str) -> None:
        """A request of the client at `address` was refused before it could be read, because of `detail`."""
        now = self._clock()
        if now < self._silent_until:
            self._unlogged += 1
            return
        log.warning(
            "A request from %s was refused: %s (%d others since the last line)", address, detail, self._unlogged
        )
        self._silent_until, self._unlogged = now + LOG_PAUSE_S, 0


__all__ = ["RefusalLog", "bytes_of", "fault_of"]
