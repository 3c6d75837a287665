"""Links: between any two domains that participate in an RP and are active peers or acquaintances of each other, each
side making its own.

A peer is linked wherever it is admitted; an acquaintance where both domains are admitted by the home's signed word, and
with the first key that the home's word names.

The life of a link (rps/rules/statements.py: LINK_STATES): a participant that is a peer becomes known, or a participant
becomes a peer -> the link is offered, `live` -> events are exchanged (replication/forwarding/outbound.py); its lease is
renewed while both conditions hold -> the peer keeps refusing the RP: `stopped`, offered again after a while, or live at
once when the peer sends a part about the RP -> either domain leaves or lapses, or the peering ends: removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from eventing.conf import config
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.peering.models import Acquaintance
from eventing.peering.rules.acquaintances import LINKS_MAX
from eventing.peering.selectors.partners import acquaintances
from eventing.peering.selectors.peers import peers_active
from eventing.replication.models import DETAIL_CHARS_MAX, ReplicaAdmission, ReplicaLink
from eventing.replication.selectors.regions import acquainted_at, vouched
from eventing.rps.models import RendezvousPoint

LEASE_S = 300  # bound: seconds of a link's lease; a link that is not renewed ends
OFFER_AGAIN_S = 60  # a stopped link is offered again: the peer may have joined, or have room, by now
BATCH = 200  # RPs of one transaction

State = ReplicaLink.State


@dataclass(slots=True)
class LinkPartners:
    """Domains that links are made with, in one call of `links_offer`.

    Attributes:
        peers: names of active peers.
        acquaintances: by name.
        linked: links with acquaintances so far, at most LINKS_MAX.
    """

    peers: set[str]
    acquaintances: Mapping[str, Acquaintance]
    linked: int = 0


class Offered(NamedTuple):
    """A link that begins: the peer is to be sent this domain's vector."""

    rp: str
    peer: str


def links_offer(*, rps: Iterable[str] | None = None, now: datetime | None = None) -> list[Offered]:
    """Make missing links, renew valid ones, remove obsolete ones; of these RPs, or of all.

    Returns the links that begin, or begin again.
    """
    now = now or timezone.now()
    partners = LinkPartners({peer.name for peer in peers_active()}, {one.name: one for one in acquaintances()})
    offered: list[Offered] = []
    after = ""
    while batch := list(_shared(rps).filter(id__gt=after).values_list("id", "home")[:BATCH]):
        after = batch[-1][0]
        with change(now) as outbox:
            offered += _offer(dict(batch), partners, outbox)
    return offered


def link_stopped(*, rp: str, peer: str, detail: str, now: datetime | None = None) -> bool:
    """Stop a link because the peer refuses the RP: nothing is sent there until it is offered again. Returns whether it
    was live.
    """
    now = now or timezone.now()
    with change(now) as outbox:
        live = ReplicaLink.objects.filter(rp=rp, peer=peer, state=State.LIVE)
        stopped = live.update(state=State.STOPPED, detail=detail[:DETAIL_CHARS_MAX], changed_at=now)
        if stopped:
            outbox.announce(rp)
    return bool(stopped)


def links_resume(*, peer: str, rps: Iterable[str], now: datetime | None = None) -> bool:
    """Resume stopped links with the peer for these RPs, which it sends parts about. Returns whether there were any."""
    stopped = ReplicaLink.objects.filter(rp__in=list(rps), peer=peer, state=State.STOPPED)
    if not stopped.exists():
        return False
    now = now or timezone.now()
    with change(now) as outbox:
        for link in stopped.select_for_update():
            ReplicaLink.objects.filter(pk=link.pk).update(state=State.LIVE, detail="", told=-1, changed_at=now)
            outbox.announce(link.rp_id)
    return True


def _shared(rps: Iterable[str] | None) -> QuerySet[RendezvousPoint]:
    """Return RPs with other participants, with a home elsewhere, or with links."""
    rows = RendezvousPoint.objects.order_by("id")
    if rps is not None:
        return rows.filter(id__in=list(rps))
    admitted = Exists(ReplicaAdmission.objects.filter(rp=OuterRef("pk")))
    return rows.filter(~Q(home="") | admitted | Exists(ReplicaLink.objects.filter(rp=OuterRef("pk"))))


def _offer(homes: dict[str, str], partners: LinkPartners, outbox: Outbox) -> list[Offered]:
    now = outbox.now
    expires_at = now + timedelta(seconds=LEASE_S)
    lease = {"granted_s": LEASE_S, "warn_at": expires_at, "expires_at": expires_at}
    wanted = _wanted(homes, partners, now)
    held: dict[str, dict[str, ReplicaLink]] = {rp: {} for rp in homes}
    for link in ReplicaLink.objects.select_for_update().filter(rp__in=homes):
        held[link.rp_id][link.peer] = link
    begin = [Offered(rp, peer) for rp in homes for peer in sorted(wanted[rp] - held[rp].keys())]
    unproven = {one for one in begin if one.peer in partners.acquaintances}
    unproven -= vouched(unproven, partners.acquaintances)
    begin = [one for one in begin if one not in unproven]
    ReplicaLink.objects.bulk_create(ReplicaLink(rp_id=rp, peer=peer, changed_at=now, **lease) for rp, peer in begin)
    links = [link for rp in homes for link in held[rp].values()]
    renew: list[int] = []
    again: list[Offered] = []
    for link in links:
        if link.peer not in wanted[link.rp_id]:
            _remove(link, homes[link.rp_id], outbox)
        elif link.state == State.STOPPED and link.changed_at <= now - timedelta(seconds=OFFER_AGAIN_S):
            again.append(Offered(link.rp_id, link.peer))
            ReplicaLink.objects.filter(pk=link.pk).update(state=State.LIVE, detail="", told=-1, changed_at=now, **lease)
        elif link.expires_at <= now + timedelta(seconds=LEASE_S / 2):
            renew.append(link.pk)
    ReplicaLink.objects.filter(pk__in=renew).update(**lease)
    for rp in sorted({one.rp for one in (*begin, *again)}):
        outbox.announce(rp)
    return [*begin, *again]


def _wanted(homes: dict[str, str], partners: LinkPartners, now: datetime) -> dict[str, set[str]]:
    """Return per RP the peers that participate, and the acquaintances if this domain is admitted itself."""
    own, active = config().domain, partners.peers
    wanted = {rp: {home} & active for rp, home in homes.items()}
    admitted = ReplicaAdmission.objects.filter(rp__in=homes, revoked=False, expires_at__gt=now, domain__in=active)
    pairs = admitted.exclude(domain=own).order_by("rp").values_list("rp_id", "domain")
    for rp, domains in groupby(pairs, key=lambda pair: pair[0]):
        wanted[rp] |= {domain for _, domain in domains}
    if partners.acquaintances:
        for rp, names in acquainted_at(homes, partners.acquaintances, now).items():
            names = names[: max(0, LINKS_MAX - partners.linked)]
            partners.linked += len(names)
            wanted[rp] |= set(names)
    return wanted


def _remove(link: ReplicaLink, home: str, outbox: Outbox) -> None:
    """Remove a link; at the home, report a participant whose admission expired (others were reported when they left)."""
    link.delete()
    outbox.announce(link.rp_id)
    if home:
        return
    lapsed = ReplicaAdmission.objects.filter(rp=link.rp_id, domain=link.peer, revoked=False, expires_at__lte=outbox.now)
    if lapsed.exists():
        data = {"rp": link.rp_id, "domain": link.peer, "home": config().domain, "reason": "lease-expired"}
        outbox.event(events.REPLICA_REMOVED, link.rp_id, data)
