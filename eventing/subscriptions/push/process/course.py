"""The course of one subscription in the deliverer: its place in the log, its endpoint, and when it may be sent to."""

from __future__ import annotations

import time
from asyncio import TimerHandle
from collections.abc import Mapping

from eventing.conf import config
from eventing.core.errors import InvalidRequest
from eventing.core.events.history import HistoryBounds
from eventing.subscriptions.push.catalogue import MODES
from eventing.subscriptions.push.modes import PushMode, PushTarget
from eventing.subscriptions.push.process.rp_feeds import RpFeed
from eventing.subscriptions.push.rules.addresses import endpoint_url, ports_parse
from eventing.subscriptions.push.rules.client_identities import ClientIdentity
from eventing.subscriptions.push.rules.delivery_window import DeliveryWindow
from eventing.subscriptions.push.rules.endpoint_states import RECEIVING, EndpointStanding, EndpointState
from eventing.subscriptions.push.rules.options import HANDSHAKE
from eventing.subscriptions.push.rules.request_rates import effective_rate, pause_s
from eventing.subscriptions.push.rules.signatures import secret_parse, signature_key
from eventing.subscriptions.push.selectors import EndpointRow, Replay
from eventing.subscriptions.push.services.vault import signing_master, unseal

Host = tuple[str, int]
CREDENTIAL_EXPIRED = "credential-expired"


class Course:
    """One subscription. `generation` is that of the row that it was made of.

    Attributes:
        window: None until the place in the log is known.
        queued: whether it waits for its turn.
        busy: whether a request outside the window is in flight: consent, test or replay.
        failed_at: Unix seconds at which the last failure was counted.
        pause_s: seconds between the begins of two requests, by the rate that owner and endpoint allow; 0 for no bound.
        spaced_at: Unix seconds before which that rate allows no request.
        delivers_until: Unix seconds until which this domain delivers; a subscription that several domains hold is
            delivered by one of them (shared_courses.py).
        term: in which it delivers.
        covered: of a shared subscription, the last sequence of each feed that was delivered, by any holder.
    """

    __slots__ = (
        "busy", "covered", "delivers_until", "expires_at", "failed_at", "feed", "generation", "history", "host", "id", "in_flight",
        "is_shared", "max_attempts", "mode", "owner", "pause_s", "queued", "replays", "resealed_at", "spaced_at", "standing",
        "start", "stopped", "target", "term", "test_id", "timer", "window",
    )  # fmt: skip

    def __init__(self, row: EndpointRow, feed: RpFeed) -> None:
        self.id = row.id
        self.feed = feed
        self.window: DeliveryWindow | None = None
        self.queued = self.busy = self.stopped = False
        self.failed_at = self.spaced_at = 0.0
        self.timer: TimerHandle | None = None
        self.replays: list[Replay] = []
        self.is_shared = bool(row.keeper)
        self.delivers_until = 0.0 if self.is_shared else float("inf")
        self.term = 0
        self.covered: Mapping[str, int] = {}
        self.generation = 0
        self.update(row)

    def update(self, row: EndpointRow) -> None:
        """Take what is stored. Raises SecretsNotOpened, InvalidRequest (settings do not allow the address any more, or the
        credential has expired).
        """
        settings = config()
        secrets = unseal(row.id, row.sealed)
        deliver = row.deliver
        credential, identity = secrets.credential, secrets.identity
        if credential is not None and credential.until is not None and time.time() >= credential.until:
            raise InvalidRequest(CREDENTIAL_EXPIRED)
        signing = secrets.signing()
        signature = deliver.get("signature", "v1a")
        self.mode: PushMode = MODES[str(deliver["mode"])]
        self.target = PushTarget(
            subscription=row.id,
            rp=row.rp,
            origin=settings.domain,
            url=endpoint_url(secrets.url, ports=ports_parse(settings.push_ports), private=settings.push_private),
            form=str(deliver.get("format", "")),
            headers=(*secrets.headers, *((("Authorization", credential.field),) if credential else ())),
            secrets=_secret_bytes(signature, signing),
            key=signature_key(signing_master(), row.id) if signature in ("v1a", "both") else None,
            verification=str(deliver.get("verification", HANDSHAKE)),
            batch=int(deliver.get("batch", 1)),
            rate=deliver.get("rate"),
            identity=ClientIdentity(identity.certificate, identity.key, identity.digest) if identity else None,
            mode_data=secrets.mode_data,
            base=settings.base_url,
            signature=str(signature),
        )
        self.pace(row.allowed_rate)
        ending = (*secrets.secrets, *((credential,) if credential else ()))
        untils = [one.until for one in ending if one.until is not None]
        self.resealed_at = min(untils) if untils else float("inf")
        self.host: Host = (self.target.url.host, self.target.url.port)
        self.max_attempts: int | None = deliver.get("max_attempts")
        if row.generation != self.generation:  # otherwise what an attempt changed may not be stored yet
            self.standing: EndpointStanding = row.standing
        self.generation = row.generation
        self.owner = row.owner
        self.start = row.start
        self.history: HistoryBounds = row.history
        self.expires_at = row.expires_at
        self.test_id = row.test_id
        self.in_flight = int(deliver.get("in_flight", 1))
        if self.window is not None:
            self.window.in_flight_max = self.in_flight

    @property
    def is_stale(self) -> bool:
        """True if a secret that signs has ended, or the lease."""
        now = time.time()
        return now >= self.resealed_at or now >= self.expires_at

    @property
    def is_failing(self) -> bool:
        """True if the last attempt failed: such endpoints have places of their own."""
        return self.standing.failures > 0 or self.standing.state is EndpointState.UNVERIFIED

    @property
    def delivers(self) -> bool:
        """True while this domain delivers the subscription."""
        return time.time() < self.delivers_until

    @property
    def has_work(self) -> bool:
        """True if a request could be made now, apart from its endpoint's wait."""
        if self.stopped or time.time() >= self.expires_at:
            return False
        if self.standing.state is EndpointState.UNVERIFIED:
            return not self.busy
        if self.standing.state not in RECEIVING:
            return False
        if (self.test_id or self.replays) and not self.busy:
            return True
        return self.window is not None and self.delivers and self.window.has_work(self.feed.end)

    def pace(self, allowed_rate: int | None) -> None:
        """Space requests by the rate that the endpoint allows, and the one that the owner stated."""
        self.pause_s = pause_s(effective_rate(self.target.rate, allowed_rate))

    def spaced(self, now: float) -> None:
        """Count a request that begins now."""
        if self.pause_s:
            self.spaced_at = max(self.spaced_at, now) + self.pause_s

    def wait_s(self, now: float) -> float:
        """Return the seconds until the endpoint may be called again."""
        return max(0.0, self.standing.next_at - now, self.spaced_at - now)

    def stop(self) -> None:
        """Take part no more."""
        self.stopped = True
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def _secret_bytes(signature: str, stated: tuple[str, ...]) -> tuple[bytes, ...]:
    """Return the bytes of the secrets that sign: those of Standard Webhooks are encoded, others are text."""
    if signature in ("v1", "both"):
        return tuple(map(secret_parse, stated))
    return () if signature == "v1a" else tuple(one.encode() for one in stated)
