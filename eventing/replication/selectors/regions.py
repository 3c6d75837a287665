"""Reads of regions: RPs that the same domains share, and acquaintances at RPs. A participant is a domain that the home
admits now, or the home itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Sum

from eventing.conf import config
from eventing.overlay.regions import region_id
from eventing.peering.models import Acquaintance
from eventing.replication.models import ReplicaAdmission, ReplicaLink
from eventing.replication.selectors.forwarding import Participation
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import admission_read, unpacked
from eventing.sql.remembered import remembered


class Region(NamedTuple):
    """RPs that the same domains share.

    Attributes:
        id: of the participants (overlay/regions.py).
        participants: this domain included, by name.
        rp: the first of the RPs by id, which stands for all of them in messages.
        rps: number of RPs.
    """

    id: str
    participants: tuple[str, ...]
    rp: str
    rps: int


def regions_found(now: datetime) -> dict[str, Region]:
    """Return the regions of all RPs that this domain shares, by id."""
    own = config().domain
    homes = dict(_shared().values_list("id", "home"))
    found: dict[tuple[str, ...], list[str]] = {}
    for rp, domains in _admitted(now).items():
        if rp in homes:
            participants = tuple(sorted({homes.pop(rp) or own, *domains}))
            if own in participants and len(participants) > 1:
                found.setdefault(participants, []).append(rp)
    return {
        (key := region_id(participants)): Region(key, participants, min(rps), len(rps))
        for participants, rps in found.items()
    }


def region_of(who: Participation, now: datetime) -> str:
    """Return the id of an RP's region."""
    return region_id({who.home, *(domain for domain in who.admitted if who.takes_part(domain, now))})


@remembered
def regions_version() -> tuple[object, ...]:
    """Return values that differ once participants change other than by expiry: one read.

    By the time of the newest RP, one that replaced another and has as many changes differs from it.
    """
    rows = RendezvousPoint.objects.exclude(descriptor=None).aggregate(
        count=Count("id"), changes=Sum("statements"), newest=Max("created_at"), changed=Max("changed_at")
    )
    return tuple(rows.values())


def links_version() -> tuple[object, ...]:
    """Return values that differ once participants, or the rows of links, change other than by expiry."""
    return (*regions_version(), *_links_counted())


@remembered
def _links_counted() -> tuple[object, ...]:
    return tuple(ReplicaLink.objects.aggregate(count=Count("id"), newest=Max("id")).values())


def admission_next_end(now: datetime) -> datetime | None:
    """Return when the next admission expires; None for none."""
    ends = ReplicaAdmission.objects.filter(expires_at__gt=now).order_by("expires_at")
    return ends.values_list("expires_at", flat=True).first()


def acquainted_at(homes: Mapping[str, str], names: Mapping[str, Acquaintance], now: datetime) -> dict[str, list[str]]:
    """Return for each of these RPs (id to home) the acquaintances that participate; only where this domain does."""
    own = config().domain
    admitted = _admitted(now, rps=list(homes), domains=[own, *names])
    found: dict[str, list[str]] = {}
    for rp, home in homes.items():
        domains = {home or own, *admitted.get(rp, ())}
        if own in domains:
            found[rp] = sorted(domains & names.keys())
    return found


def vouched(pairs: Collection[tuple[str, str]], names: Mapping[str, Acquaintance]) -> set[tuple[str, str]]:
    """Return those of these (RP, acquaintance) for which the home's signed word names the acquaintance's first key."""
    if not pairs:
        return set()
    keys: dict[tuple[str, str], str] = {}
    rows = ReplicaAdmission.objects.filter(rp__in={rp for rp, _ in pairs}, domain__in={name for _, name in pairs})
    for rp, domain, statement in rows.values_list("rp_id", "domain", "statement"):
        if (rp, domain) in pairs:
            keys[rp, domain] = admission_read(unpacked(statement)).fingerprint
    homes = RendezvousPoint.objects.filter(id__in={rp for rp, _ in pairs}).exclude(home="")
    for row in homes.only("genesis", "homes"):
        term = row.home_term
        keys[row.id, term.domain] = term.fingerprint  # the home itself has no admission
    return {pair for pair in pairs if keys.get(pair) == names[pair[1]].fingerprint}


def _shared() -> QuerySet[RendezvousPoint]:
    admitted = Exists(ReplicaAdmission.objects.filter(rp=OuterRef("pk")))
    return RendezvousPoint.objects.filter(~Q(home="") | admitted).exclude(descriptor=None)


def _admitted(
    now: datetime, *, rps: Sequence[str] | None = None, domains: Sequence[str] | None = None
) -> dict[str, list[str]]:
    """Return the domains that are admitted now, by RP; of these RPs and domains, or of all."""
    rows = ReplicaAdmission.objects.filter(revoked=False, expires_at__gt=now)
    rows = rows if rps is None else rows.filter(rp__in=rps)
    rows = rows if domains is None else rows.filter(domain__in=domains)
    pairs = rows.order_by("rp").values_list("rp_id", "domain")
    return {rp: [domain for _, domain in some] for rp, some in groupby(pairs, key=lambda pair: pair[0])}
