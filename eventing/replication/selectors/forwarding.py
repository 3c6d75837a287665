"""Reads for forwarding: the participants of the RPs in an exchange."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from eventing.conf import config
from eventing.core.container import per_process
from eventing.peering.selectors.partners import acquaintances
from eventing.replication.models import ReplicaAdmission
from eventing.replication.selectors.replicas import SKEW_S, links_of_rps
from eventing.rps.models import RendezvousPoint
from eventing.sql.leases import renewed_by_use_from
from eventing.sql.remembered import remembered

CACHE_S = 1.0  # after this time every process sees a join, a leave or an admission
CACHED_MAX = 20_000  # RPs; ~1 KiB each


@dataclass(frozen=True, slots=True)
class Participation:
    """The participants of an RP, as an exchange needs them.

    Attributes:
        home: the home of the RP; empty if there is no such RP here, or it has ended.
        links: the peers with which its events are exchanged, and the acquaintances that are admitted, as this domain is.
        admitted: by origin, until when its seals are accepted; the home's always are.
        renewed_from: Unix seconds from which on arriving events renew the RP's lease; infinity for never, and elsewhere
            than at its home.
        term: term of the home.
    """

    home: str = ""
    links: tuple[str, ...] = ()
    admitted: Mapping[str, datetime] = field(default_factory=dict)
    renewed_from: float = math.inf
    term: int = 0

    def admits(self, origin: str, sealed_at: datetime, now: datetime) -> bool:
        """Return whether what `origin` sealed then is accepted: the home's always, others' while their admission was
        valid.
        """
        if not self.home:
            return False
        until = self.admitted.get(origin)
        return origin == self.home or (until is not None and until + timedelta(seconds=SKEW_S) > min(now, sealed_at))

    def takes_part(self, domain: str, now: datetime) -> bool:
        """Return whether the domain is the home, or admitted at this moment."""
        until = self.admitted.get(domain)
        return domain == self.home or (until is not None and until > now)


NOBODY = Participation()


class _Cache:
    """Participations by RP, each read at most once in CACHE_S; those wanted at once are read in three queries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Participation]] = {}

    def get(self, rps: Iterable[str], fresh: bool) -> dict[str, Participation]:
        now = time.monotonic()
        found: dict[str, Participation] = {}
        unknown: list[str] = []
        for rp in rps:
            entry = self._kept.get(rp)
            if not fresh and entry is not None and now - entry[0] < CACHE_S:
                found[rp] = entry[1]
            else:
                unknown.append(rp)
        if unknown:
            read = _read(unknown)
            with self._lock:
                if len(self._kept) + len(read) > CACHED_MAX:
                    self._kept.clear()
                self._kept.update({rp: (now, one) for rp, one in read.items()})
            found.update(read)
        return found

    def forget(self) -> None:
        self._kept = {}


_cache = per_process(_Cache)


def participations(rps: Iterable[str], *, fresh: bool = False) -> dict[str, Participation]:
    """Return the participation of each of these RPs, at most CACHE_S old, or read now (`fresh`); NOBODY for an RP that
    is not here.
    """
    return _cache().get(rps, fresh)


def participations_forget() -> None:
    """Discard this process's cached participations after a change."""
    _cache().forget()


def _read(rps: list[str]) -> dict[str, Participation]:
    own = config().domain
    homes, links, admitted = _rows(tuple(rps))
    acquainted = {row.name for row in acquaintances()}
    now = timezone.now()
    found = dict.fromkeys(rps, NOBODY)
    for rp, (home, expires_at, asked_s, renew_on_use, term) in homes.items():
        by_use = renew_on_use and not home
        renewed_from = renewed_by_use_from(expires_at, asked_s, config().lease_s_default) if by_use else math.inf
        who = Participation(home or own, links.get(rp, ()), admitted.get(rp, {}), renewed_from, term)
        found[rp] = replace(who, links=_admitted_links(who, acquainted, now)) if acquainted else who
    return found


@remembered
def _rows(
    rps: tuple[str, ...],
) -> tuple[dict[str, list[Any]], dict[str, tuple[str, ...]], dict[str, dict[str, datetime]]]:
    """Return columns, links and admissions by RP."""
    columns = ("home", "expires_at", "asked_s", "renew_on_use", "term")
    homes = {rp: about for rp, *about in RendezvousPoint.objects.filter(id__among=rps).values_list("id", *columns)}
    admitted: dict[str, dict[str, datetime]] = {}
    rows = ReplicaAdmission.objects.filter(rp__among=rps, revoked=False)
    for rp, domain, expires_at in rows.values_list("rp_id", "domain", "expires_at"):
        admitted.setdefault(rp, {})[domain] = expires_at
    return homes, links_of_rps(rps), admitted


def _admitted_links(who: Participation, acquainted: set[str], now: datetime) -> tuple[str, ...]:
    """Return the links without those to acquaintances where either domain is not admitted now."""
    here = who.takes_part(config().domain, now)
    return tuple(name for name in who.links if name not in acquainted or (here and who.takes_part(name, now)))
