"""The course of one subscription in the deliverer: its place in the log, its endpoint, and when it may be sent to."""

from __future__ import annotations

import time
from asyncio import TimerHandle

from eventing.conf import config
from eventing.core.events.history import HistoryBounds
from eventing.subscriptions.push.catalogue import MODES
from eventing.subscriptions.push.modes import PushMode, PushTarget
from eventing.subscriptions.push.process.rp_feeds import RpFeed
from eventing.subscriptions.push.rules.addresses import endpoint_url, ports_parse
from eventing.subscriptions.push.rules.delivery_window import DeliveryWindow
from eventing.subscriptions.push.rules.endpoint_states import RECEIVING, EndpointStanding, EndpointState
from eventing.subscriptions.push.rules.signatures import secret_parse, signature_key
from eventing.subscriptions.push.selectors import EndpointRow, Replay
from eventing.subscriptions.push.services.vault import signing_master, unseal

Host = tuple[str, int]


class Course:
    """One subscription. `generation` is that of the row that it was made of.

    Attributes:
        window: None until the place in the log is known.
        queued: whether it waits for its turn.
        busy: whether a request outside the window is in flight: consent, test or replay.
        failed_at: Unix seconds at which the last failure was counted.
    """

    __slots__ = (
        "busy", "expires_at", "failed_at", "feed", "generation", "history", "host", "id", "in_flight", "max_attempts", "mode",
        "owner", "queued", "replays", "resealed_at", "standing", "start", "stopped", "target", "test_id", "timer", "window",
    )  # fmt: skip

    def __init__(self, row: EndpointRow, feed: RpFeed) -> None:
        self.id = row.id
        self.feed = feed
        self.window: DeliveryWindow | None = None
        self.queued = self.busy = self.stopped = False
        self.failed_at = 0.0
        self.timer: TimerHandle | None = None
        self.replays: list[Replay] = []
        self.update(row)

    def update(self, row: EndpointRow) -> None:
        """Take what is stored. Raises NotOpened, InvalidRequest (settings do not allow the address any more)."""
        settings = config()
        secrets = unseal(row.id, row.sealed)
        deliver = row.deliver
        signing = secrets.signing()
        signature = deliver.get("signature", "v1a")
        self.mode: PushMode = MODES[str(deliver["mode"])]
        self.target = PushTarget(
            subscription=row.id,
            rp=row.rp,
            origin=settings.domain,
            url=endpoint_url(secrets.url, ports=ports_parse(settings.push_ports), private=settings.push_private),
            form=str(deliver.get("format", "")),
            headers=secrets.headers,
            secrets=tuple(map(secret_parse, signing)) if signature != "v1a" else (),
            key=signature_key(signing_master(), row.id) if signature != "v1" else None,
            verification=str(deliver.get("verification", "")),
            batch=int(deliver.get("batch", 1)),
        )
        untils = [one.until for one in secrets.secrets if one.until is not None]
        self.resealed_at = min(untils) if untils else float("inf")
        self.host: Host = (self.target.url.host, self.target.url.port)
        self.max_attempts: int | None = deliver.get("max_attempts")
        self.generation = row.generation
        self.owner = row.owner
        self.start = row.start
        self.history: HistoryBounds = row.history
        self.expires_at = row.expires_at
        self.test_id = row.test_id
        self.standing: EndpointStanding = row.standing
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
        return self.window is not None and self.window.has_work(self.feed.end)

    def wait_s(self, now: float) -> float:
        """Return the seconds until the endpoint may be called again."""
        return max(0.0, self.standing.next_at - now)

    def stop(self) -> None:
        """Take part no more."""
        self.stopped = True
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
