"""One RP of this domain that other domains take part in, as tables hold it; and the requests that those domains send."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.utils import timezone

from eventing.core import merkle
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds
from eventing.core.seals import seals
from eventing.core.signing import Signed
from eventing.log import control, federated
from eventing.log.federated import LogHead
from eventing.peering.models import Misbehaviour, Peer
from eventing.peering.selectors.peers import peers_forget
from eventing.peering.services.domain_documents import document_pin
from eventing.peering.wire import messages as wire
from eventing.peering.wire.endpoints import Sender
from eventing.replication.forwarding import inbound
from eventing.replication.models import ReplicaAdmission, ReplicaLink
from eventing.replication.selectors.forwarding import participations_forget
from eventing.rps.rules.statements import packed
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from tests.peering.other_domain import OtherDomain
from tests.planes import events_made, principal

_NUMBERS = itertools.count(1)
EPOCH = "bbbbbbbb"
BOUNDS = HistoryBounds(100_000, 1 << 26, None)


def new_rp(**history: int) -> str:
    """The id of a new RP of this domain, with its log."""
    made = rendezvous_point_create(principal=principal("ann"), lease_s=3600, history=history or None)
    control.ensure_log(made.id, made.bounds)
    return str(made.id)


def peer_made(domain: OtherDomain, **columns: Any) -> Peer:
    """`domain` as an active peer, its document pinned."""
    now = timezone.now()
    document_pin(domain.document(), fingerprint=domain.fingerprint)
    values = {"url": domain.url, "state": "active", "fingerprint": domain.fingerprint, "heard_at": now}
    lease = {"granted_s": 3600, "warn_at": now, "expires_at": now + timedelta(hours=1)}
    row = Peer.objects.create(name=domain.name, created_at=now, changed_at=now, **{**values, **lease, **columns})
    peers_forget()
    return row


def link(rp: str, *domains: OtherDomain) -> None:
    """Links between this domain and `domains` at the RP, which are admitted there."""
    now = timezone.now()
    lease = {"granted_s": 3600, "warn_at": now, "expires_at": now + timedelta(hours=1)}
    for domain in domains:
        ReplicaLink.objects.create(rp_id=rp, peer=domain.name, changed_at=now, **lease)
        admit(rp, domain)


def admit(rp: str, domain: OtherDomain, *, for_s: int = 3600) -> None:
    """Admit the feed of `domain`; a negative time for one whose admission has ended."""
    ends = timezone.now() + timedelta(seconds=for_s)
    statement = packed(Signed(b"{}", "k", b"s" * 64))  # only carried on here, never read
    ReplicaAdmission.objects.create(rp_id=rp, domain=domain.name, statement=statement, issued_at_ms=1, expires_at=ends)
    participations_forget()


class Scene:
    """An RP of ours that b and c take part in; both are peers and linked. `peer` is b's row, `other` c's."""

    def __init__(self) -> None:
        self.rp = new_rp()
        self.b, self.c = OtherDomain("b.test"), OtherDomain("c.test")
        self.peer, self.other = peer_made(self.b), peer_made(self.c)
        link(self.rp, self.b, self.c)


class Origin:
    """A domain's feed of one RP: makes the runs that it would send."""

    def __init__(self, domain: OtherDomain, rp: str, epoch: str = EPOCH) -> None:
        self.domain, self.rp = domain, rp
        self.feed = Feed(domain.name, epoch)
        self.last = 0
        self.previous = b""

    def events(self, count: int) -> list[bytes]:
        return [event.body for event in events_made(count, next(_NUMBERS) * 10_000)]

    def seal(self, events: Sequence[bytes], *, first: int = 0, previous: bytes | None = None, **more: Any) -> Signed:
        """Sign a seal over events, whether it fits or not."""
        said = {
            "rp": self.rp,
            "feed": self.feed,
            "first": first or self.last + 1,
            "leaves": merkle.leaves(events),
            "previous": self.previous if previous is None else previous,
            "sealed_at_ms": int(timezone.now().timestamp() * 1000),
            "private_jwk": self.domain.keys[-1],
        }
        return seals.seal_make(**{**said, **more})

    def run(self, count: int = 3, *via: str, **more: Any) -> wire.SealedRun:
        """The next run, as it comes by these domains."""
        events = self.events(count)
        statement = self.seal(events, **more)
        self.last += count
        self.previous = seals.digest(statement)
        return wire.SealedRun(statement, events, b"", [self.domain.name, *via])

    def floor(self, first: int, **more: Any) -> Signed:
        """State that all before `first` is gone."""
        said = {"rp": self.rp, "feed": self.feed, "first": first, "private_jwk": self.domain.keys[-1]}
        now_ms = int(timezone.now().timestamp() * 1000)
        return seals.low_water_mark_make(**{**said, "stated_at_ms": now_ms, **more})


def send(peer: Peer, *parts: wire.RpPart, **more: Any) -> wire.ExchangeAnswer:
    """An exchange of an authenticated peer."""
    body = wire.encode(wire.ExchangeRequest(wire.VERSION, list(parts), **more))
    return wire.answer(inbound.exchange(Sender(peer.name, "k", Peer.objects.get(pk=peer.pk)), body))


def send_runs(
    peer: Peer, rp: str, *runs: wire.SealedRun, have: dict[str, int] | None = None, **more: Any
) -> wire.RpAnswer:
    """An exchange about one RP; what was answered of it."""
    return send(peer, wire.RpPart(rp, have or {}, list(runs), **more)).parts[0]


def counted() -> dict[tuple[str, str, str], int]:
    """Misbehaviour by kind, carrier and origin."""
    return {(row.kind, row.carrier, row.origin): row.count for row in Misbehaviour.objects.all()}


def held(rp: str) -> list[bytes]:
    """All events in the log."""
    return control.read(rp, 1, 10_000, 1 << 24).events


def head(rp: str) -> LogHead:
    found = federated.heads([rp])[0]
    assert found is not None
    return found
