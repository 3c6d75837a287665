"""Limits of one gateway process: rates per principal, per rendezvous point and in total, connections, and new
connections.

Pure, and used on the hot path: `publish` takes about a microsecond (tests/gateway/test_limits.py bounds it) and
allocates nothing unless it refuses. State is an `Account` per principal or client address and a `PublishCounts` per RP, in
tables that are bounded and from which a client cannot have its own bucket evicted (rates.Table). A session holds its
account, so that it is not looked up per event. Rates of the domain are divided by the number of its live gateway processes, on
all hosts; docs/limits.md describes the consequences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

from eventing.access.rules.rates import Bucket, Rate, Table
from eventing.core.config import Config
from eventing.core.errors import RateLimited, Unavailable
from eventing.core.shapes import Count, Shape, doc, one_of

# ~0.5 KiB each; twice the connections that one process takes
# bound: principals, and addresses, with rates of their own; an idle one is discarded; if none is idle, newcomers share one
ACCOUNTS_MAX = 200_000
# bound: RPs with rates of their own; an idle one is discarded; if none is idle, newcomers share one
FLOWS_MAX = 100_000
# bound: addresses whose invalid tokens are counted; an idle one is discarded; if none is idle, newcomers share one
FAILURES_MAX = 100_000
FAILED_WINDOW_S = 10  # a client with an old token, or a user who mistypes, is not locked out
FAILED_DEBT_S_MAX = 10.0  # bounds the lock-out of an address by requests that were in progress when the bucket emptied
REFUSED_DEBT_S_MAX = 5.0
SESSIONS_RETRY_S = 10  # the end of one of the principal's connections cannot be predicted
# bound: largest publishes' bytes in unfinished WebSocket messages of a principal, per gateway; the connection is closed: 4004
# See `Limits.unfinished`.
UNFINISHED_MESSAGES_MAX = 4
# bound: largest publishes' bytes in unfinished WebSocket messages of all clients without a token; the connection is closed: 4004
STRANGERS_UNFINISHED_MESSAGES_MAX = 8
# bound: largest publishes' bytes in unfinished WebSocket messages of all clients; the connection is closed: 4004
GATEWAY_UNFINISHED_MESSAGES_MAX = 32
# The reconnecting clients of a restarted gateway are spread over this time.
LINE_S_MAX = 30.0  # bound: seconds that a new connection is deferred at a time; the connection is deferred again


class Account:
    """Usage by one principal or client address."""

    __slots__ = ("address", "bytes", "events", "name", "requests", "sessions", "unfinished_bytes")

    def __init__(self, name: str, address: bool, requests: Rate, events: Rate, size: Rate) -> None:
        self.name = name
        self.address = address  # whether it is a client address, of requests without a valid token
        self.requests = Bucket(requests)
        self.events = Bucket(events)
        self.bytes = Bucket(size)
        self.sessions = 0
        self.unfinished_bytes = 0  # bytes held of incomplete WebSocket messages

    def idle(self, now: float) -> bool:
        """Return True if a new one would be equal."""
        return not self.sessions and self.requests.idle(now) and self.events.idle(now) and self.bytes.idle(now)


class PublishCounts:
    """Usage of publishing at one RP, or in the domain."""

    __slots__ = ("bytes", "events")

    def __init__(self, events: Rate, size: Rate) -> None:
        self.events = Bucket(events)
        self.bytes = Bucket(size)

    def idle(self, now: float) -> bool:
        """Return True if a new one would be equal."""
        return self.events.idle(now) and self.bytes.idle(now)


class LimitAnswer(Shape):
    """A limit and its use."""

    name: Annotated[str, doc("Name of the limit, as in the `limit` member of a refusal and in the RateLimit headers.")]
    unit: str
    limit: Annotated[float | None, doc("Amount per second for a rate, else the greatest number; null: none.")]
    used: Annotated[Count, doc("Used amount; for a rate, of the burst.")]
    remaining: Annotated[Count | None, doc("Amount that would be admitted now.")]
    window_s: Annotated[float | None, doc("Seconds of the rate that a burst may use at once; null: no rate.")]
    reset_s: Annotated[Count | None, doc("Seconds until a rate is wholly available; null: no rate.")]
    counted: Annotated[str, one_of("gateway", "domain")]


class Limits:
    """Limits of one gateway process.

    Args:
        config: the limits.
        clock: a steady clock, seconds.
    """

    def __init__(self, config: Config, clock: Callable[[], float]) -> None:
        self._config, self._clock = config, clock
        self._gateways = config.gateways
        self._set_rates()
        self.accepts = Rate(config.accepts_per_s, 1.0)
        self._principals = Table(lambda name: self._account(name, False), ACCOUNTS_MAX)
        self._addresses = Table(lambda name: self._account(name, True), ACCOUNTS_MAX)
        self._failures = Table(lambda _: Bucket(self.failed), FAILURES_MAX)
        self._flows = Table(lambda _: PublishCounts(self.rp_events, self.rp_bytes), FLOWS_MAX)
        self._message_bytes_max = config.batch_bytes_max
        self._unfinished_bytes = self._strangers_unfinished_bytes = 0
        self._domain = PublishCounts(self.domain_events, self.domain_bytes)
        self._domain_requests = Bucket(self.domain_requests)
        self._accepted = Bucket(self.accepts)
        self._line_ends_at = -math.inf

    def _set_rates(self) -> None:
        """Compute this process's shares."""
        config, gateways = self._config, self._gateways
        self._sessions_max = math.ceil(config.sessions_per_principal / gateways)
        self._address_sessions_max = math.ceil(config.sessions_per_address / gateways)

        def rate(per_s: int) -> Rate:
            return Rate(per_s, config.rate_window_s).shared(gateways)

        self.requests = rate(config.requests_per_s)
        self.events = rate(config.publish_events_per_s)
        self.bytes = rate(config.publish_bytes_per_s)
        self.rp_events = rate(config.rp_events_per_s)
        self.rp_bytes = rate(config.rp_bytes_per_s)
        self.domain_events = rate(config.domain_events_per_s)
        self.domain_bytes = rate(config.domain_bytes_per_s)
        self.domain_requests = rate(config.domain_requests_per_s)
        self.failed = Rate(config.failed_tokens_per_s, FAILED_WINDOW_S).shared(gateways)
        self._policy_fields = {publishing: self._policy_field(publishing) for publishing in (False, True)}

    def share(self, gateways: int) -> None:
        """Share the domain's rates and connections with its other live gateways. What is owed stays owed for as long.

        Args:
            gateways: how many gateways live, with this one; at least 1.
        """
        if gateways == self._gateways:
            return
        self._gateways = gateways
        self._set_rates()
        for account in (*self._principals, *self._addresses):
            account.requests.change(self.requests)
            account.events.change(self.events)
            account.bytes.change(self.bytes)
        for flow in self._flows:
            flow.events.change(self.rp_events)
            flow.bytes.change(self.rp_bytes)
        for failures in self._failures:
            failures.change(self.failed)
        self._domain.events.change(self.domain_events)
        self._domain.bytes.change(self.domain_bytes)
        self._domain_requests.change(self.domain_requests)

    def _account(self, name: str, address: bool) -> Account:
        return Account(name, address, self.requests, self.events, self.bytes)

    def principal(self, identity: str) -> Account:
        """Return the account of the principal with this identity."""
        return self._principals.get(identity, self._clock())

    def address(self, key: str) -> Account:
        """Return the account of clients without a valid token at this address (client_address.address_key)."""
        return self._addresses.get(key, self._clock())

    # Requests

    def request(self, account: Account) -> None:
        """Count a request. Raises RateLimited."""
        now = self._clock()
        if not account.requests.take(1, now):
            raise _limited("requests", "You send more requests than allowed here.", account.requests.wait_s(1, now))
        if not self._domain_requests.take(1, now):
            account.requests.refund(1)
            wait_s = self._domain_requests.wait_s(1, now)
            raise _limited("domain-requests", "This domain receives more requests than it accepts.", wait_s)

    def refused(self, account: Account) -> None:
        """Count a request that was refused before it could be counted."""
        account.requests.charge(1, self._clock(), REFUSED_DEBT_S_MAX)

    def require_may_try(self, address: str) -> None:
        """Raise RateLimited before the verification of an unknown token, if too many tokens from this address were invalid."""
        bucket = self._failures.peek(address)
        if bucket is not None and (wait_s := bucket.wait_s(1, self._clock())):
            raise _limited("failed-tokens", "Too many invalid tokens from your address.", wait_s)

    def token_failed(self, address: str) -> None:
        """Count a token from this address that failed verification."""
        now = self._clock()
        self._failures.get(address, now).charge(1, now, FAILED_DEBT_S_MAX)

    # Publishing

    def publish(self, account: Account, rp: str, events: int, size: int) -> None:
        """Count `events` with `size` bytes to be published at the RP, all of them or none. Raises RateLimited."""
        now = self._clock()
        flow = self._flows.get(rp, now)
        if not self._take(account, flow, events, size, now):
            raise self._not_published(account, flow, events, size, now)

    def request_to_publish(self, account: Account, rp: str, events: int, size: int) -> bool:
        """Count as `request` and `publish` together: both are counted, or neither is and the result is False."""
        now = self._clock()
        if not account.requests.take(1, now):
            return False
        if self._domain_requests.take(1, now):
            if self._take(account, self._flows.get(rp, now), events, size, now):
                return True
            self._domain_requests.refund(1)
        account.requests.refund(1)
        return False

    def _take(self, account: Account, flow: PublishCounts, events: int, size: int, now: float) -> bool:
        """Take from all buckets of a publish, or from none."""
        domain = self._domain
        if not account.events.take(events, now):
            return False
        if account.bytes.take(size, now):
            if flow.events.take(events, now):
                if flow.bytes.take(size, now):
                    if domain.events.take(events, now):
                        if domain.bytes.take(size, now):
                            return True
                        domain.events.refund(events)
                    flow.bytes.refund(size)
                flow.events.refund(events)
            account.bytes.refund(size)
        account.events.refund(events)
        return False

    def _not_published(self, account: Account, flow: PublishCounts, events: int, size: int, now: float) -> RateLimited:
        """Make the refusal with the longest wait of all exceeded limits."""
        domain = self._domain
        asked = (
            ("publish-events", account.events, events, "You publish more events than allowed here."),
            ("publish-bytes", account.bytes, size, "You publish more bytes than allowed here."),
            ("rp-publish-events", flow.events, events, "This rendezvous point receives more events than it accepts."),
            ("rp-publish-bytes", flow.bytes, size, "This rendezvous point receives more bytes than it accepts."),
            ("domain-publish-events", domain.events, events, "This domain receives more events than it accepts."),
            ("domain-publish-bytes", domain.bytes, size, "This domain receives more bytes than it accepts."),
        )
        name, bucket, amount, detail = max(asked, key=lambda one: one[1].wait_s(one[2], now))
        return _limited(name, f"{detail} Nothing of this request was stored.", bucket.wait_s(amount, now))

    # Connections

    def accept(self) -> None:
        """Count a new connection. Raises Unavailable above the accept rate of this process.

        Each refused client gets a `Retry-After` of its own, as in a queue: clients that all returned at once would be
        refused again.
        """
        now = self._clock()
        if self._accepted.take(1, now):
            return
        self._line_ends_at = min(max(self._line_ends_at, now) + 1.0 / self.accepts.per_s, now + LINE_S_MAX)
        raise Unavailable(
            "Connections are opened faster than this gateway accepts them. Try again later.",
            retry_after_s=_whole(max(self._line_ends_at - now, self._accepted.wait_s(1, now))),
            limit="accepts",
        )

    def not_accepted(self) -> None:
        """Undo the count of a new connection that was refused all the same."""
        self._accepted.refund(1)

    def session_opened(self, account: Account) -> None:
        """Count a connection, until `session_closed`. Raises RateLimited."""
        most = self._sessions_of(account)
        if most and account.sessions >= most:
            raise _limited("sessions", "You have the maximum number of connections; close some.", SESSIONS_RETRY_S)
        account.sessions += 1

    def _sessions_of(self, account: Account) -> int:
        return self._address_sessions_max if account.address else self._sessions_max

    def session_closed(self, account: Account) -> None:
        """Count the end of a connection."""
        account.sessions -= 1

    def unfinished(self, account: Account, change_bytes: int) -> bool:
        """Count the bytes that a connection of `account` holds of an incomplete message: `change_bytes` more, or less.

        Returns False above a limit: of this account, of all clients without a token, or of the gateway. The bytes are
        counted all the same: the caller discards them, and counts that too.
        """
        account.unfinished_bytes += change_bytes
        self._unfinished_bytes += change_bytes
        size = self._message_bytes_max
        within = (
            account.unfinished_bytes <= UNFINISHED_MESSAGES_MAX * size
            and self._unfinished_bytes <= GATEWAY_UNFINISHED_MESSAGES_MAX * size
        )
        if account.address:
            self._strangers_unfinished_bytes += change_bytes
            within = within and self._strangers_unfinished_bytes <= STRANGERS_UNFINISHED_MESSAGES_MAX * size
        return within or change_bytes <= 0

    # For users and clients

    def of_account(self, account: Account) -> list[LimitAnswer]:
        """Describe the limits of a principal, as this process counts them."""
        now = self._clock()
        most = self._sessions_of(account) or None
        return [
            _rate_state("requests", "requests", self.requests, account.requests, now),
            _rate_state("publish-events", "events", self.events, account.events, now),
            _rate_state("publish-bytes", "bytes", self.bytes, account.bytes, now),
            LimitAnswer(
                "sessions",
                "connections",
                most,
                account.sessions,
                most and max(0, most - account.sessions),
                None,
                None,
                "gateway",
            ),
        ]

    def of_rp(self, rp: str) -> list[LimitAnswer]:
        """Describe the limits of publishing at an RP, by all clients."""
        now = self._clock()
        flow = self._flows.peek(rp) or PublishCounts(self.rp_events, self.rp_bytes)
        return [
            _rate_state("rp-publish-events", "events", self.rp_events, flow.events, now),
            _rate_state("rp-publish-bytes", "bytes", self.rp_bytes, flow.bytes, now),
        ]

    def of_domain(self) -> list[LimitAnswer]:
        """Describe the limits of all clients together."""
        now = self._clock()
        return [
            _rate_state("domain-requests", "requests", self.domain_requests, self._domain_requests, now),
            _rate_state("domain-publish-events", "events", self.domain_events, self._domain.events, now),
            _rate_state("domain-publish-bytes", "bytes", self.domain_bytes, self._domain.bytes, now),
            _rate_state("accepts", "connections", self.accepts, self._accepted, now),
        ]

    def policy_field(self, publishing: bool) -> bytes:
        """Format the value of `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10); empty if nothing is limited."""
        return self._policy_fields[publishing]

    def _policy_field(self, publishing: bool) -> bytes:
        policies = [("requests", self.requests, "")]
        if publishing:
            policies += [("publish-events", self.events, ""), ("publish-bytes", self.bytes, ';qu="content-bytes"')]
        return ", ".join(
            f'"{name}";q={int(rate.burst)}{unit};w={math.ceil(rate.window_s)}'
            for name, rate, unit in policies
            if rate.per_s
        ).encode()

    def field(self, account: Account, publishing: bool) -> bytes:
        """Format the value of `RateLimit`: the remainder of each of the same policies, and the seconds until it is full again."""
        now = self._clock()
        items = []
        if self.requests.per_s:
            items.append(b'"requests";r=%d;t=%d' % account.requests.left(now))
        if publishing and self.events.per_s:
            items.append(b'"publish-events";r=%d;t=%d' % account.events.left(now))
        if publishing and self.bytes.per_s:
            items.append(b'"publish-bytes";r=%d;t=%d' % account.bytes.left(now))
        return b", ".join(items)


def _rate_state(name: str, unit: str, rate: Rate, bucket: Bucket, now: float) -> LimitAnswer:
    unit = f"{unit} per second"
    if not rate.per_s:
        return LimitAnswer(name, unit, None, 0, None, None, None, "gateway")
    remaining, reset_s = bucket.left(now)
    used = max(0, int(rate.burst) - remaining)
    return LimitAnswer(name, unit, rate.per_s, used, remaining, rate.window_s, reset_s, "gateway")


def _whole(seconds: float) -> int:
    """Round up to whole seconds, at least one, as Retry-After requires."""
    return max(1, math.ceil(seconds))


def _limited(name: str, detail: str, wait_s: float) -> RateLimited:
    retry_after_s = _whole(wait_s)
    detail = f"{detail} Wait {retry_after_s} s."
    return RateLimited(detail, retry_after_s=retry_after_s, **{"limit": name, "violated-policies": [name]})
