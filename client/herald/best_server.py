"""The choice of the best server for one connection, among the alternatives that its domain names. No I/O, clock or random source here.

client/js/best_server.js makes the same decisions: tests/client/best_server_vectors.json tests both. connection.py measures and moves.

Life: alternatives are named -> their delays and the present server's are measured -> another is clearly better, twice -> `go` -> `arrived`
or `failed`. A redirect that the domain advises is followed after one measurement.

Laws:
 1. A server is left by choice only for one that is faster by MARGIN_MS. Of servers within NEAR_MS of the fastest the one that the domain
    names first is chosen, so the chosen server is within MARGIN_MS + NEAR_MS of the fastest that was measured.
 2. After a move the next by choice waits `HOLD_S`, twice as long each time, until one stay has lasted STAYED_S: no move back and forth.
 3. At most HOPS_MAX redirects are followed within MEMORY_S, and none within that time to a server that sent this client away: domains that
    point to each other keep no client moving.
 4. A redirect is followed before it expires, or not at all; if none of its servers answers, the client stays.
 5. Only servers that are named for every rendezvous point of the connection are alternatives.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MEASURED_MAX = 16  # servers measured at once, besides the present one; as many as a domain names
RPS_MAX = 1000  # rendezvous points of a connection for which alternatives are remembered; beyond it none are used
MARGIN_MS = 10.0
NEAR_MS = 5.0
ADVISED_NEAR_MS = 15.0  # of a redirect's servers, those this close to the fastest count as equal: the load decides
FIRST_S = 30.0  # until the first measurement after alternatives were named; half of it to all of it, at random
CONFIRM_S = 10.0  # until the measurement that confirms another
MEASURE_S = 600.0  # between measurements; half of it to all of it, at random
HOLD_S = 60.0
HOLD_S_MAX = 3600.0
STAYED_S = 3600.0
HOPS_MAX = 2
MEMORY_S = 600.0
RETURN_S = 3600.0  # until a server that sent this client away is chosen again by its delay
AVOIDED_S = 300.0  # a server to which a move failed is not chosen for this time
SLOWER = "is slower"
ASKS = "asks to go on elsewhere"


@dataclass(frozen=True, slots=True)
class ServerMove:
    """Next server: the client connects there first, and leaves then. `reason`, about the present server, is for people."""

    url: str
    reason: str

    @property
    def advised(self) -> bool:
        """Return whether the domain advised it."""
        return self.reason == ASKS


@dataclass(slots=True)
class BestServer:
    """The choice for one connection; see the module. Times are seconds of any steady clock, delays milliseconds.

    Attributes:
        measure_at: when `measures` are wanted next; None: not before something else happens.
        go: where to go now; None: stay.
    """

    random: random_module.Random
    current: str
    measure_at: float | None = None
    go: ServerMove | None = None
    _named: dict[str, list[str]] = field(default_factory=dict)  # by RP, in the domain's order
    _advised: list[str] = field(default_factory=list)  # the servers of a redirect that is not followed yet
    _expires_at: float = 0.0
    _favourite: str | None = None  # was clearly better in the last measurement
    _followed_at: list[float] = field(default_factory=list)
    _left_at: dict[str, float] = field(default_factory=dict)  # servers that sent this client away
    _avoided_until: dict[str, float] = field(default_factory=dict)
    _arrived_at: float | None = None
    _hold_s: float = 0.0

    # ---- what the domain states ----

    def named(self, rp: str, urls: Sequence[str], now: float) -> None:
        """Record the alternatives for one RP of the connection, in the domain's order; they replace earlier ones."""
        if rp in self._named or len(self._named) < RPS_MAX:
            self._named[rp] = list(urls)[:MEASURED_MAX]
        else:
            self._named[next(iter(self._named))] = []
        if self.measure_at is None and self.alternatives(now):
            self.measure_at = now + self._jittered(FIRST_S)

    def forget(self, rp: str) -> None:
        """Discard the alternatives for an RP that the connection no longer uses."""
        self._named.pop(rp, None)

    def redirected(self, urls: Sequence[str], hops: int, valid_s: float, now: float) -> None:
        """Record the advice to move to one of these servers, with the count that the domain believes it makes."""
        allowed = self._allowed(urls, now)
        if valid_s > 0 and hops <= HOPS_MAX and self.hops(now) < HOPS_MAX and allowed and self.go is None:
            self._advised, self._expires_at = allowed[:MEASURED_MAX], now + valid_s
            self.measure_at = now

    # ---- measuring ----

    def hops(self, now: float) -> int:
        """Return the number of redirects followed lately, as it is stated to the next server."""
        self._followed_at = [at for at in self._followed_at if now - at < MEMORY_S]
        return len(self._followed_at)

    def alternatives(self, now: float) -> list[str]:
        """Return the servers that are named for every RP and may be chosen, in the order for the first RP."""
        lists = list(self._named.values())
        if not lists:
            return []
        return self._allowed([url for url in lists[0] if all(url in others for others in lists[1:])], now)

    def measures(self, now: float) -> list[str]:
        """Return the servers to measure, the present one first; nothing if there is nothing to choose. Then call `measured`."""
        if self._advised and now >= self._expires_at:
            self._advised = []
        servers = self._advised or self.alternatives(now)
        self.measure_at = None
        return [self.current, *servers] if servers else []

    def measured(self, delays_ms: Mapping[str, float | None], now: float) -> None:
        """Record the round-trip times, None for servers that did not answer; `go` may be set then."""
        reached = {url: delay for url, delay in delays_ms.items() if delay is not None and url != self.current}
        if self._advised and not any(url in delays_ms for url in self._advised):
            self.measure_at = now  # the redirect arrived meanwhile
            return
        advised, self._advised = [url for url in self._advised if url in reached], []
        if advised and now < self._expires_at:
            self._go(_first_near(advised, reached, ADVISED_NEAR_MS), ASKS)
            return
        chosen = self._clearly_better(reached, delays_ms.get(self.current), now)
        if chosen is not None and chosen == self._favourite:
            self._go(chosen, SLOWER)
            return
        self._favourite = chosen
        pause_s = CONFIRM_S if chosen is not None else self._jittered(MEASURE_S)
        self.measure_at = now + pause_s if self.alternatives(now) else None

    # ---- moving ----

    def arrived(self, url: str, now: float) -> None:
        """Record that the connection is at this server, by a move of `go` or any other way."""
        move, self.go = self.go, None
        if move is not None and move.url == url:
            if move.advised:
                self._followed_at.append(now)
                self._left_at = {one: at for one, at in self._left_at.items() if now - at < RETURN_S}
                self._left_at[self.current] = now
            lasted = self._arrived_at is None or now - self._arrived_at >= STAYED_S
            self._hold_s = HOLD_S if lasted else min(HOLD_S_MAX, max(HOLD_S, 2 * self._hold_s))
            self._arrived_at = now
        if url != self.current:
            self._named.clear()  # the next server names its own
            self._advised, self._favourite, self.measure_at = [], None, None
        self.current = url

    def failed(self, url: str, now: float) -> None:
        """Record that a move could not be made: the connection stays."""
        self.go = None
        self._avoided_until = {one: until for one, until in self._avoided_until.items() if until > now}
        self._avoided_until[url] = now + AVOIDED_S
        self.measure_at = now + self._jittered(MEASURE_S) if self._named else None

    # ---- inside ----

    def _allowed(self, urls: Sequence[str], now: float) -> list[str]:
        def may_go(url: str) -> bool:
            sent_away = self._sent_away(url, now, MEMORY_S)
            return url != self.current and not sent_away and self._avoided_until.get(url, now) <= now

        return [url for url in dict.fromkeys(urls) if may_go(url)]

    def _clearly_better(self, reached: Mapping[str, float], own_ms: float | None, now: float) -> str | None:
        order = [url for url in self.alternatives(now) if url in reached and not self._sent_away(url, now, RETURN_S)]
        held = self._arrived_at is not None and now - self._arrived_at < self._hold_s
        if not order or own_ms is None or held:
            return None
        chosen = _first_near(order, reached, NEAR_MS)
        return chosen if own_ms - reached[chosen] >= MARGIN_MS else None

    def _sent_away(self, url: str, now: float, within_s: float) -> bool:
        left_at = self._left_at.get(url)
        return left_at is not None and now - left_at < within_s

    def _go(self, url: str, reason: str) -> None:
        self.go, self._favourite = ServerMove(url, reason), None

    def _jittered(self, seconds: float) -> float:
        return seconds * (0.5 + 0.5 * self.random.random())


def _first_near(order: Sequence[str], delays_ms: Mapping[str, float], near_ms: float) -> str:
    """Return the first server whose delay is within `near_ms` of the least."""
    least = min(delays_ms[url] for url in order)
    return next(url for url in order if delays_ms[url] <= least + near_ms)
