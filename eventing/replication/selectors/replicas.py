"""Reads of replicas: links of an RP, its participants, admitted origins, recent ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Max, QuerySet
from django.utils import timezone

from eventing.conf import config
from eventing.replication.models import ReplicaAdmission, ReplicaEnd, ReplicaLink
from eventing.rps.models import RendezvousPoint
from eventing.sql.leases import is_due
from eventing.sql.remembered import remembered, remembers

SKEW_S = (
    30  # how far the clocks of two domains may differ; what expires by the home's clock expires here that much later
)
FEW_LINKS = 256  # with all peers together: read at once
LINKS_MAX = 1000  # links of one peer read at once; RPs of one request (peering/wire/messages.py)


class Participant(NamedTuple):
    """A domain that participates in an RP. `role` is `home` or `replica`; `url` may be empty if not known yet."""

    domain: str
    url: str
    role: str
    expires_at: datetime | None


def links_of_rp(rp: str) -> list[str]:
    """Return the peers with which this RP's events are exchanged, by name."""
    return list(_live().filter(rp=rp).order_by("peer").values_list("peer", flat=True))


def links_of_rps(rps: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return `links_of_rp` for many in one query, without RPs that have no links."""
    wanted = list(rps)
    if not wanted:
        return {}
    found: dict[str, list[str]] = {}
    for rp, peer in _live().filter(rp__among=wanted).order_by("peer").values_list("rp_id", "peer"):
        found.setdefault(rp, []).append(peer)
    return {rp: tuple(peers) for rp, peers in found.items()}


def links_of_peer(peer: str, *, after: str = "") -> list[str]:
    """Return the RPs linked with a peer, by id: at most LINKS_MAX, those after the id `after`."""
    few = links_if_few()
    if few is not None:
        return [rp for rp in few.get(peer, ()) if rp > after][:LINKS_MAX]
    rows = _live().filter(peer=peer, rp__gt=after).order_by("rp")
    return list(rows.values_list("rp_id", flat=True)[:LINKS_MAX])


def links_if_few() -> Mapping[str, list[str]] | None:
    """Return the RPs linked with each peer, by id; None where they are more than FEW_LINKS together, or would be read each time."""
    return _links_if_few() if remembers() else None


@remembered
def _links_if_few() -> dict[str, list[str]] | None:
    rows = list(_live().order_by("rp").values_list("peer", "rp_id")[: FEW_LINKS + 1])
    if len(rows) > FEW_LINKS:
        return None
    found: dict[str, list[str]] = {}
    for peer, rp in rows:
        found.setdefault(peer, []).append(rp)
    return found


def links_by_peer(row: RendezvousPoint) -> dict[str, ReplicaLink]:
    """Return the links of an RP, in any state, by peer."""
    return {link.peer: link for link in ReplicaLink.objects.filter(rp=row)}


def links_with(peer: str, *, after: str, count: int) -> list[ReplicaLink]:
    """Return up to `count` links with a peer, in any state, with their RPs, by the RPs' ids: those after `after`."""
    rows = ReplicaLink.objects.filter(peer=peer, rp_id__gt=after).select_related("rp").order_by("rp_id")
    return list(rows[:count])


def rps_stopped_before(moment: datetime) -> list[str]:
    """Return RPs with links that stopped before this moment, at most LINKS_MAX."""
    if not is_due(_stopped_first(), moment):
        return []
    rows = ReplicaLink.objects.filter(state=ReplicaLink.State.STOPPED, changed_at__lte=moment)
    return list(rows.order_by("rp").values_list("rp_id", flat=True).distinct()[:LINKS_MAX])


@remembered
def _stopped_first() -> datetime | None:
    """Return when the first of the stopped links stopped; None: none is."""
    rows = ReplicaLink.objects.filter(state=ReplicaLink.State.STOPPED).order_by("changed_at")
    return rows.values_list("changed_at", flat=True).first()


def replica_kept(rp: str) -> RendezvousPoint | None:
    """Our replica of another domain's RP, until it is reaped; None if there is none."""
    return RendezvousPoint.objects.filter(id=rp).exclude(home="").first()


def linked(rp: str, peer: str) -> bool:
    """Return whether the RP's events are exchanged with the peer."""
    return _live().filter(rp=rp, peer=peer).exists()


def origin_admitted(rp: str, origin: str, now: datetime, *, sealed_at: datetime | None = None) -> bool:
    """Return whether the feed of `origin` is accepted at the RP: the home's always, others' by the home's admission.

    An origin that has left or lapsed may have published before: what it sealed by then is accepted from any carrier
    (`sealed_at`, the time in the seal), while its last admission is kept. Of one whose admission the home withdrew
    (`revoked`) nothing is accepted any more.
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
    """Return all stored admissions, the latest to expire first."""
    return list(ReplicaAdmission.objects.filter(rp=rp).order_by("-expires_at", "domain"))


def domains_admitted(now: datetime) -> set[str]:
    """Return the domains that are admitted to any RP now."""
    return {domain for domain, until in _admitted_until() if until > now}


@remembered
def _admitted_until() -> list[tuple[str, datetime]]:
    """Return each domain that was admitted to any RP, with when its last admission expires."""
    rows = ReplicaAdmission.objects.filter(revoked=False).order_by("domain")
    return list(rows.values_list("domain").annotate(until=Max("expires_at")))


def ever_admitted(domain: str) -> bool:
    """Return whether an admission of the domain is stored, including expired ones."""
    return ReplicaAdmission.objects.filter(domain=domain).exists()


def admitted_url(rp: str, domain: str) -> str:
    """Return the address of a domain in its admission to the RP; empty if there is none."""
    admission = ReplicaAdmission.objects.filter(rp=rp, domain=domain).first()
    return admission.url if admission is not None else ""


def participants(row: RendezvousPoint, now: datetime) -> list[Participant]:
    """Return the home, and the admitted domains, this domain included."""
    return participants_of_all([row], now)[row.id]


def participants_of_all(rows: Iterable[RendezvousPoint], now: datetime) -> dict[str, list[Participant]]:
    """Return `participants` of many RPs, by their ids, in one query."""
    found = {row.id: [_home(row)] for row in rows}
    admitted = ReplicaAdmission.objects.filter(rp__among=list(found), revoked=False, expires_at__gt=now)
    for rp, domain, url, expires_at in admitted.order_by("domain").values_list("rp_id", "domain", "url", "expires_at"):
        found[rp].append(Participant(domain, url, "replica", expires_at))
    return found


def _home(row: RendezvousPoint) -> Participant:
    return Participant(row.home or config().domain, "" if row.home else config().base_url, "home", None)


def participants_of(rp: str, now: datetime) -> list[Participant]:
    """Return the participants of an RP by its id; none if this domain has no such RP."""
    row = RendezvousPoint.objects.filter(id=rp).first()
    return [] if row is None else participants(row, now)


def ended(rp: str, *, now: datetime | None = None) -> ReplicaEnd | None:
    """Return the record of a participation that ended here recently; None if there is none."""
    return ReplicaEnd.objects.filter(rp=rp, until__gt=now or timezone.now()).first()


def _live() -> QuerySet[ReplicaLink]:
    return ReplicaLink.objects.filter(state=ReplicaLink.State.LIVE)
