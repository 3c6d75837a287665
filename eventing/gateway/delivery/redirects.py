"""Redirects of clients to other replicas, when a replica here has ended and when this gateway stops.

An ended replica is remembered for a day (replication/selectors/redirects.py): HTTP requests for it are answered 307
with the same path at another replica, WebSockets are sent a `redirect` frame before the error. A stopping gateway sends
its readers `redirect` before it closes; it looks up the addresses in advance, when an RP with replicas is first read
and every CHECK_S after. Version-vector cursors make the move lossless. Readers of an RP with replicas are given ranked
`alternatives` from the start (replication/rules/ranking.py); reader_moves.py asks a share of them to leave.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import parse_qsl, quote, urlencode

from eventing.core.errors import ApplicationError, Gone, Moved
from eventing.gateway import http
from eventing.gateway.delivery.frames import message
from eventing.replication.rules.ranking import Alternative, ReplicaServer, ranked
from eventing.replication.rules.reader_moves import HOPS_MAX
from eventing.replication.selectors.redirects import URLS_MAX
from eventing.replication.selectors.replica_servers import replica_servers
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.threads import in_database
from eventing.store.errors import RedisError

CHECK_S = 60.0
LOOKUP_S = 1.0  # bound: seconds that a subscribe waits for the first look at an RP's servers; it is answered without alternatives
READ_AT_ONCE = 500  # bound: RPs whose servers are read at once; the others are read next
RPS_MAX = 10_000  # bound: RPs whose other addresses are in memory; the oldest are discarded
HOPS_CHARS_MAX = 3  # bound: digits of a client's hop count; the client counts as one that follows no redirects
log = logging.getLogger(__name__)


def hops_of(members: Mapping[str, str]) -> int | None:
    """Return the redirects that a client has followed, as the member `hops` of its query states; None: it follows none."""
    stated = members.get("hops", "")
    return (
        min(int(stated), HOPS_MAX) if stated.isascii() and stated.isdigit() and len(stated) <= HOPS_CHARS_MAX else None
    )


def redirect_frame(rp: str, urls: list[str], **advice: float) -> bytes:
    """Make {"op": "redirect", "rp", "to": [base URL of a domain, ...]}, for a move of readers with `hops` and `valid_s`."""
    return message({"op": "redirect", "rp": rp, "to": urls, **advice})


def alternatives_of(found: Iterable[Alternative]) -> list[dict[str, str | int]]:
    """Return the member `alternatives`: [{"url", "weight"}, ...], the first the one drawn for this reader."""
    return [{"url": one.url, "weight": one.weight} for one in found]


def location(moved: Moved, scope: http.Scope, action: str) -> str:
    """Make the address for repeating the request: at the first replica, by the RP's id, and without this domain's
    token.

    A request about a shared subscription keeps its path there.
    """
    members = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    kept = urlencode([(name, value) for name, value in members if name != "access_token"])
    shared = moved.extra.get("subscription")
    of = f"subscriptions/{quote(shared, safe='')}" if shared else f"rps/{quote(moved.extra['rp'], safe='')}"
    path = f"/api/v1/{of}/{action}"
    return f"{moved.extra['to'][0].rstrip('/')}{path}{'?' if kept else ''}{kept}"


def of_subscription(error: ApplicationError) -> ApplicationError:
    """Convert the error for a durable subscription whose RP has moved: the subscription was local and has ended with
    the replica.

    A shared subscription has moved itself, and continues.
    """
    if not isinstance(error, Moved) or "subscription" in error.extra:
        return error
    return Gone(
        "The subscription ended with this domain's replica; subscribe at one of the domains in `to`.", **error.extra
    )


class Redirects:
    """Cache of the other domains that serve each RP: a stopping gateway has no time to look them up. One per gateway.

    Args:
        domain: this domain's name.
    """

    def __init__(self, domain: str) -> None:
        self._domain = domain
        self._servers: dict[str, list[ReplicaServer]] = {}
        self._checked_at: dict[str, float] = {}
        self._checks: dict[str, asyncio.Future[None]] = {}  # done when the servers were read, or could not be
        self._wanted: list[str] = []  # those of them that are not being read yet
        self._reading: asyncio.Task[None] | None = None

    def known(self, rp: str, reader: str) -> list[str]:
        """Return the base URLs of the other domains that serve `rp`: those ranked for the reader, then those without room."""
        others = [one.url for one in self._servers.get(rp, ()) if one.domain != self._domain and one.url]
        return list(dict.fromkeys([*(one.url for one in self.alternatives(rp, reader)), *others]))[:URLS_MAX]

    def alternatives(self, rp: str, reader: str) -> list[Alternative]:
        """Return the domains where a reader may continue, ranked for it; none while they are not known."""
        return ranked(self._servers.get(rp, ()), self._domain, reader)

    async def looked_up(self, rp: str) -> None:
        """Return when the servers of the RP are known, or cannot be found out now; after LOOKUP_S at most."""
        if rp not in self._servers:
            self._check_soon(rp)
            await asyncio.wait([self._checks[rp]], timeout=LOOKUP_S)

    async def looked_up_anew(self, rp: str) -> None:
        """Return when the servers of the RP were read after this call, or cannot be found out now; after LOOKUP_S at most.

        Readers are moved for a reason that changed the servers, such as a new replica: those known from before CHECK_S would be named again.
        """
        if (under_way := self._checks.get(rp)) is not None:
            await asyncio.wait([under_way], timeout=LOOKUP_S)
        self._check_soon(rp)
        await asyncio.wait([self._checks[rp]], timeout=LOOKUP_S)

    def when_known(self, rp: str, then: Callable[[], None]) -> None:
        """Call `then` once the servers of the RP are known, or cannot be found out now; at once if they are."""
        if rp in self._servers:
            then()
        else:
            self._check_soon(rp)
            self._checks[rp].add_done_callback(lambda _: then())

    def check(self, descriptor: Descriptor) -> None:
        """Look up the servers of an RP soon, if it has replicas."""
        if not descriptor.home and not descriptor.links:
            return
        rp, now = descriptor.id, time.monotonic()
        if now - self._checked_at.get(rp, -CHECK_S) >= CHECK_S:
            self._check_soon(rp)

    def _check_soon(self, rp: str) -> None:
        if rp in self._checks:
            return
        self._checked_at.pop(rp, None)
        self._checked_at[rp] = time.monotonic()
        if len(self._checked_at) > RPS_MAX:
            oldest = next(iter(self._checked_at))
            del self._checked_at[oldest]
            self._servers.pop(oldest, None)
        self._checks[rp] = asyncio.get_running_loop().create_future()
        self._wanted.append(rp)
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        """Read the servers of the wanted RPs, and of those wanted meanwhile, many at once: what is known of domains is the same for all."""
        try:
            while self._wanted:
                rps, self._wanted = self._wanted[:READ_AT_ONCE], self._wanted[READ_AT_ONCE:]
                try:
                    self._servers |= await in_database(replica_servers)(rps)
                except (ApplicationError, RedisError) as error:
                    log.warning(
                        "The addresses of the replicas of %d rendezvous points cannot be read: %s", len(rps), error
                    )
                    for rp in rps:
                        self._checked_at.pop(rp, None)
                except Exception:
                    log.exception("The addresses of the replicas of %d rendezvous points cannot be read", len(rps))
                finally:
                    for rp in rps:
                        self._checks.pop(rp).set_result(None)
        finally:
            self._reading = None

    def close(self) -> None:
        """Stop looking up."""
        if self._reading is not None:
            self._reading.cancel()
