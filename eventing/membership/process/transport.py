"""Transport of the overlay's messages: signed requests to domains that can be called, and queues for those that only call out.

To each domain at most one request is under way; messages meanwhile are in the next one. An exchange is a sign of life in both
directions, whichever side began it: the request shows the caller, the answer the process of the overlay at the other side (a gateway answers
only while that process runs). So a beat that is due is put off until the last exchange is a beat's period old, and of the two ends of a
link only one calls. A beat that a request brought is answered by the answer to that request: an answering message of its own would be a second
request, half of what idle links cost.

Messages of a round of gossip wait for the next request to their domain, a beat's period at most, so they cost no requests of their own
where there are links.

A domain that can be called by nobody polls: soon after each message that may be answered, and with every beat.

A domain whose software refuses requests with the messages of gossip and suspicion (it answers 400) gets none of them for PLAIN_S. It keeps
its place: every request that it answers is a sign of life.

Only the thread of the overlay calls methods here; requests run on threads of their own, whose results are delivered to it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from django.db import close_old_connections

from eventing.membership.process.routes import DomainRoute, Routes
from eventing.membership.process.timers import Timers
from eventing.membership.wire import codec, messages
from eventing.membership.wire.codec import MESSAGES_MAX, BadOverlayMessage
from eventing.overlay import gossip, suspicion
from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.liveness import ALIVE, BEAT_S, Beat
from eventing.overlay.machine import Down, SendMessage
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire import client
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import OVERLAY, OVERLAY_BYTES_MAX
from eventing.store.errors import RedisError
from eventing.store.link_tallies import probe_note
from eventing.store.overlay_queues import overlay_outbox_put

JUST_S = 1.0
"""An answer to a beat or a probe is not sent this soon after an exchange with its domain, which has shown the same."""
THREADS = 8  # bound: overlay requests under way; further ones wait
CALL_S = 5.0
RETRY_S = 1.0
"""A request that failed is sent once more after this; then the domain counts as unreachable."""
TIE_S = 0.7
"""Of the two ends of a link, the one with the greater name calls this much later, so that usually one does."""
BUSY_TRIES = 5
"""Repetitions of a request that exceeds the other side's rate, as when a whole directory is sent."""
PAUSE_S_MAX = 10.0  # bound: seconds of Retry-After that are waited for
SILENT_S = 30.0
"""A domain that only calls out, and has not called for this long, counts as unreachable."""
PLAIN_S = 3600.0
"""A domain whose software refuses messages of gossip and suspicion is sent some again after this."""
RTT_SHARE = 0.125
"""Share of a new measurement in a smoothed round-trip time (RFC 6298, section 2: alpha)."""
ABSENT_S = 3600.0
"""A domain that answers that it takes part in no overlay is asked again after this."""
POLLS_S = (0.3, 1.0, 2.5)
"""Polls of a domain that only calls out, after it has sent a message."""
WAITING_MAX = 512  # bound: messages that wait for a request to a domain; the oldest are dropped
REQUEST_BYTES = OVERLAY_BYTES_MAX - 8 * 1024
"""Of messages; the rest is for the records that introduce this domain."""
DOMAINS_MAX = 4096  # bound: domains of which exchanges are remembered; those without a request under way are forgotten
OPTIONAL = gossip.MESSAGES | suspicion.MESSAGES
"""Messages without which a domain takes part as well."""
OPTIONAL_TAGS = frozenset(map(codec.tag_of, OPTIONAL))
log = logging.getLogger(__name__)


class Exchanged(msgspec.Struct, frozen=True):
    """Result: a domain answered, with these messages."""

    peer: str
    messages: list[Any]
    rtt_s: float = 0.0


class NotExchanged(msgspec.Struct, frozen=True):
    """Result: a request failed."""

    peer: str
    error: Exception


class Wake(msgspec.Struct, frozen=True):
    """Timer of the transport: `beat`, `poll`, `round` or `retry`."""

    peer: str
    what: str


class Correspondence(msgspec.Struct):
    """Requests and messages under way with a domain.

    Attributes:
        waiting: encoded messages for the next request.
        sent: those of the request under way.
        calling: whether a request is under way.
        introduce: whether the next request presents this domain's records.
        failures: requests that failed in a row.
        exchanged_at: when the last request was answered, or received; -inf for never.
        beat: whether a beat waits for its time.
        paused_until: until when the domain has asked for no request.
        absent_until: until when the domain is known to take part in no overlay.
        plain_until: until when the domain is known to refuse messages of gossip and suspicion.
        rtt_s: smoothed duration of requests; 0 before the first.
        round_waits: whether messages of a round wait for their time.
    """

    waiting: list[bytes] = []
    sent: list[bytes] = []
    calling: bool = False
    introduce: bool = True
    failures: int = 0
    exchanged_at: float = float("-inf")
    beat: bool = False
    paused_until: float = 0.0
    absent_until: float = 0.0
    plain_until: float = 0.0
    rtt_s: float = 0.0
    round_waits: bool = False


class OverlayTransport:
    """The transport of one run of the overlay.

    Args:
        me: this domain.
        can_be_called: whether others can open connections to this domain.
        chain: returns the records that introduce this domain.
        deliver: hands an input, or a result of a request, to the thread of the overlay; called on any thread.
    """

    def __init__(
        self,
        me: str,
        routes: Routes,
        *,
        can_be_called: bool,
        chain: Callable[[], Sequence[DomainRecord]],
        deliver: Callable[[Any], None],
    ) -> None:
        self._me = me
        self._routes = routes
        self._can_be_called = can_be_called
        self._chain = chain
        self._deliver = deliver
        self._of: dict[str, Correspondence] = {}
        self._timers = Timers()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="overlay")
        self.requests = 0

    def close(self, *, wait: bool = False) -> None:
        """End the threads after their present requests; `wait` for that, at most CALL_S and what is written about an answer."""
        self._threads.shutdown(wait=wait, cancel_futures=True)

    def next_at(self) -> float | None:
        """Return when `due` has something to do."""
        return self._timers.next_at()

    @property
    def calling(self) -> bool:
        """True while a request is under way."""
        return any(one.calling for one in self._of.values())

    def rtt_ms(self) -> dict[str, float]:
        """Return the smoothed round-trip times of requests by domain."""
        return {peer: round(one.rtt_s * 1000, 1) for peer, one in self._of.items() if one.rtt_s}

    def send(self, output: SendMessage, now: float, *, patient: bool = False) -> None:
        """Send a message, at once or with others; a `patient` one with the next request, within a beat's period."""
        peer, message = str(output.peer), output.message
        route = self._routes.to(peer)
        with_peer = self._with(peer)
        if type(message) in OPTIONAL and (now < max(with_peer.plain_until, with_peer.absent_until) or route is None):
            return
        if route is None or now < with_peer.absent_until:
            self._deliver(Down(peer))
        elif message == ALIVE and now - with_peer.exchanged_at < JUST_S:
            return
        elif not route.url:
            self._leave(peer, with_peer, [codec.message_bytes(message)], now)
        elif type(message) is Beat and self._can_be_called:
            if not with_peer.beat:
                with_peer.beat = True
                self._set_beat(peer, with_peer, now)
        elif patient:
            with_peer.waiting.append(codec.message_bytes(message))
            del with_peer.waiting[:-WAITING_MAX]
            if not with_peer.round_waits:
                with_peer.round_waits = True
                self._timers.set(Wake(peer, "round"), now + BEAT_S)
        else:
            with_peer.waiting.append(codec.message_bytes(message))
            del with_peer.waiting[:-WAITING_MAX]
            self._call(peer, with_peer, route, now)
            if not self._can_be_called and type(message) is not Beat:
                for after_s in POLLS_S:
                    self._timers.set(Wake(peer, "poll"), now + after_s)

    def received(self, peer: str, now: float) -> None:
        """Note a request of a domain."""
        with_peer = self._with(peer)
        with_peer.exchanged_at, with_peer.absent_until = now, 0.0

    def exchanged(self, result: Exchanged, now: float) -> None:
        """Take in that a request was answered."""
        with_peer = self._with(result.peer)
        with_peer.calling, with_peer.introduce, with_peer.failures, with_peer.sent = False, False, 0, []
        with_peer.exchanged_at = now
        if result.rtt_s:
            probe_note(result.peer, answered=True, took_s=result.rtt_s, begins=False)
            before_s = with_peer.rtt_s
            with_peer.rtt_s = result.rtt_s if not before_s else before_s + RTT_SHARE * (result.rtt_s - before_s)
        if not with_peer.round_waits:
            self._go_on(result.peer, with_peer, now)

    def not_exchanged(self, result: NotExchanged, now: float) -> None:
        """Take in that a request failed: retry it once, or report the domain as unreachable."""
        peer, error = result.peer, result.error
        with_peer = self._with(peer)
        with_peer.calling = False
        unknown = isinstance(error, PeerError) and error.status in (401, 403) and not with_peer.introduce
        plain = [one for one in with_peer.sent if codec.tag_at(one) not in OPTIONAL_TAGS]
        if isinstance(error, PeerError) and error.status == 404 and error.kind == "refused":
            with_peer.absent_until = now + ABSENT_S
        elif isinstance(error, PeerError) and error.status == 400 and len(plain) < len(with_peer.sent):
            with_peer.plain_until = now + PLAIN_S
            waiting = [one for one in with_peer.waiting if codec.tag_at(one) not in OPTIONAL_TAGS]
            with_peer.waiting, with_peer.sent = [*plain, *waiting], []
            self._go_on(peer, with_peer, now)
            return
        elif unknown or with_peer.failures < (BUSY_TRIES if _is_rate(error) else 1):
            with_peer.introduce = with_peer.introduce or unknown
            with_peer.failures += 1
            with_peer.waiting = [*with_peer.sent, *with_peer.waiting][-WAITING_MAX:]
            after_s = 0.0 if unknown else _pause_s(error)
            with_peer.paused_until = now + after_s if _is_rate(error) else 0.0
            self._timers.set(Wake(peer, "retry"), now + after_s)
            return
        log.info("overlay: %s cannot be reached: %s", peer, error)
        probe_note(peer, answered=False, took_s=None, begins=False)
        with_peer.waiting, with_peer.sent, with_peer.failures = [], [], 0
        with_peer.introduce = True
        self._deliver(Down(peer))

    def due(self, now: float) -> None:
        """Send what was put off until now."""
        for wake in self._timers.due(now):
            with_peer = self._with(wake.peer)
            route = self._routes.to(wake.peer)
            if wake.what == "beat":
                if now - with_peer.exchanged_at < BEAT_S:
                    with_peer.beat = False
                    continue
                with_peer.beat = False
                with_peer.waiting.append(codec.message_bytes(Beat()))
            elif wake.what == "round":
                with_peer.round_waits = False
                if not with_peer.waiting:
                    continue
            if route is not None and route.url:
                self._call(wake.peer, with_peer, route, now)

    # Requests

    def _with(self, peer: str) -> Correspondence:
        found = self._of.get(peer)
        if found is None:
            if len(self._of) >= DOMAINS_MAX:
                self._of = {name: one for name, one in self._of.items() if one.calling or one.waiting}
            found = self._of[peer] = Correspondence()
        return found

    def _set_beat(self, peer: str, with_peer: Correspondence, now: float) -> None:
        quiet_at = with_peer.exchanged_at + BEAT_S + (TIE_S if self._me > peer else 0.0)
        self._timers.set(Wake(peer, "beat"), max(now, quiet_at))

    def _leave(self, peer: str, with_peer: Correspondence, left: list[bytes], now: float) -> None:
        """Leave messages for the call of a domain that only calls out."""
        try:
            overlay_outbox_put(peer, left)
        except RedisError as error:
            log.warning("overlay: messages for %s are lost, Redis does not answer: %s", peer, error)
        if now - with_peer.exchanged_at > SILENT_S:
            self._deliver(Down(peer))

    def _go_on(self, peer: str, with_peer: Correspondence, now: float) -> None:
        route = self._routes.to(peer)
        if with_peer.waiting and route is not None and route.url:
            self._call(peer, with_peer, route, now)

    def _call(self, peer: str, with_peer: Correspondence, route: DomainRoute, now: float) -> None:
        if with_peer.calling or now < with_peer.paused_until:  # a timer for the end of the pause runs
            return
        size = count = 0
        for one in with_peer.waiting[:MESSAGES_MAX]:
            size += len(one)
            if size > REQUEST_BYTES and count:
                break
            count += 1
        with_peer.sent, with_peer.waiting = with_peer.waiting[:count], with_peer.waiting[count:]
        with_peer.calling = True
        self.requests += 1
        body = messages.request_encode(with_peer.sent, self._chain() if with_peer.introduce else ())
        self._threads.submit(self._exchange, peer, route, body)

    def _exchange(self, peer: str, route: DomainRoute, body: bytes) -> None:
        """Send a request, on a thread of its own."""
        began = time.monotonic()
        try:
            answer = client.call(route.url, peer, OVERLAY, body, CALL_S, key=self._routes.key, keys=route.keys)
            rtt_s = time.monotonic() - began
            found = codec.decode(messages.answer_read(answer).messages)
        except PeerError as error:
            self._deliver(NotExchanged(peer, error))
        except BadOverlayMessage as error:
            self._deliver(NotExchanged(peer, error))
            misbehaviour_note("malformed", carrier=peer, detail=f"Its answer is not understood: {error}.")
        except Exception as error:
            log.exception("An overlay request to %s failed", peer)
            self._deliver(NotExchanged(peer, error))
        else:
            self._deliver(Exchanged(peer, found, rtt_s))
        finally:
            close_old_connections()


def _is_rate(error: Exception) -> bool:
    return isinstance(error, PeerError) and error.status == 429


def _pause_s(error: Exception) -> float:
    asked_s = error.retry_after_s if isinstance(error, PeerError) and error.retry_after_s is not None else RETRY_S
    return min(max(float(asked_s), RETRY_S), PAUSE_S_MAX) if _is_rate(error) else RETRY_S
