"""Reads of replicas: where an RP's events go, who participates in it, whose feeds are accepted, what has ended lately."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from eventing.conf import config
from eventing.replication.models import ReplicaAdmission, ReplicaEnd, ReplicaLink
from eventing.rps.models import RendezvousPoint

SKEW_S = 30  # how far the clocks of two domains may differ; what ends by the home's clock ends here that much later
LINKS_MAX = 1000  # of one peer, read at once; RPs of one request (peering/wire/messages.py)


class Participant(NamedTuple):
    """A domain that participates in an RP. `role` is `home` or `replica`; `url` may be empty if nobody told us yet."""

    domain: str
    url: str
    role: str
    expires_at: datetime | None


def links_of_rp(rp: str) -> list[str]:
    """The peers that this RP's events go to and come from, in the order of their names."""
    return list(_live().filter(rp=rp).order_by("peer").values_list("peer", flat=True))


def links_of_rps(rps: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """As `links_of_rp` for many, in one query; RPs without links are not in it."""
    wanted = list(rps)
    if not wanted:
        return {}
    found: dict[str, list[str]] = {}
    for rp, peer in _live().filter(rp__in=wanted).order_by("peer").values_list("rp_id", "peer"):
        found.setdefault(rp, []).append(peer)
    return {rp: tuple(peers) for rp, peers in found.items()}


def links_of_peer(peer: str, *, after: str = "") -> list[str]:
    """The RPs linked with a peer, in the order of their ids: at most LINKS_MAX, those after the id `after`."""
    rows = _live().filter(peer=peer, rp__gt=after).order_by("rp")
    return list(rows.values_list("rp_id", flat=True)[:LINKS_MAX])


def linked(rp: str, peer: str) -> bool:
    """Whether the RP's events go between us and the peer."""
    return _live().filter(rp=rp, peer=peer).exists()


def origin_admitted(rp: str, origin: str, now: datetime, *, sealed_at: datetime | None = None) -> bool:
    """Whether the feed of `origin` is accepted at the RP: the home's always, others' by the home's admission.

    An origin that has left or lapsed may still have published before it did: what it sealed by then is accepted from
    whoever carries it (`sealed_at`, the time in the seal), while its last admission is kept. Of one whose admission the
    home took back (`revoked`) nothing is accepted any more.
    """
    row = RendezvousPoint.objects.filter(id=rp).only("home").first()
    if row is None:
        return False
    if origin == (row.home or config().domain):
        return True
    admission = ReplicaAdmission.objects.filter(rp=rp, domain=origin, revoked=False).first()
    if admission is None:
        return False
    moment = now if sealed_at is None else min(now, sealed_at)
    return admission.expires_at + timedelta(seconds=SKEW_S) > moment


def admissions_of(rp: str) -> list[ReplicaAdmission]:
    """All admissions that are kept, the latest to end first."""
    return list(ReplicaAdmission.objects.filter(rp=rp).order_by("-expires_at", "domain"))


def domains_admitted(now: datetime) -> set[str]:
    """The domains that are admitted to any RP now."""
    rows = ReplicaAdmission.objects.filter(revoked=False, expires_at__gt=now)
    return set(rows.values_list("domain", flat=True).distinct())


def ever_admitted(domain: str) -> bool:
    """Whether an admission of the domain is kept, one that has ended included."""
    return ReplicaAdmission.objects.filter(domain=domain).exists()


def admitted_url(rp: str, domain: str) -> str:
    """The address of a domain as its admission to the RP says; empty if there is none."""
    admission = ReplicaAdmission.objects.filter(rp=rp, domain=domain).first()
    return admission.url if admission is not None else ""


def participants(row: RendezvousPoint, now: datetime) -> list[Participant]:
    """The home, and who is admitted now; ourselves among them."""
    own = config().domain
    home = Participant(row.home or own, "" if row.home else config().base_url, "home", None)
    rows = ReplicaAdmission.objects.filter(rp=row.id, revoked=False, expires_at__gt=now).order_by("domain")
    return [home, *(Participant(it.domain, it.url, "replica", it.expires_at) for it in rows)]


def ended(rp: str, *, now: datetime | None = None) -> ReplicaEnd | None:
    """What is remembered of a participation that ended here not long ago; None if nothing."""
    return ReplicaEnd.objects.filter(rp=rp, until__gt=now or timezone.now()).first()


def _live() -> QuerySet[ReplicaLink]:
    return ReplicaLink.objects.filter(state=ReplicaLink.State.LIVE)
