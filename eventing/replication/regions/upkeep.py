"""Upkeep of regions: the views of all regions (overlay/region_views.py) in the forwarding process, and the acquaintances
that follow from their links.

The life of a link: participations change, or half a minute has passed -> the regions are read anew, with the candidates
that the directory identifies -> the machines' messages are sent, and those that gateways received are taken in -> where
a link stands, an acquaintance begins (peering/services/acquaintances.py), and the sweep of replicas offers links at every
RP to which both are admitted -> the link ends, or delivery fails for FAILING_S: the acquaintance ends.

What a crash loses is found again: links are those of the acquaintances' rows, messages are repeated after a timer.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from django.db import connection
from django.utils import timezone

from eventing.conf import config
from eventing.core.container import per_process
from eventing.overlay.links import Reason
from eventing.overlay.region_views import RegionMembers, RegionMessage, RegionViews
from eventing.overlay.scores import Deed
from eventing.peering.directory_documents import document_fetch_soon
from eventing.peering.models import Acquaintance
from eventing.peering.ports import directory_record
from eventing.peering.rules.acquaintances import FAULTS_MAX, FAULTS_S, LEASE_S, AcquaintanceEnd
from eventing.peering.rules.deliveries import STOPS, Failure
from eventing.peering.selectors.identities import identity
from eventing.peering.selectors.misbehaviour import misbehaviour_counts
from eventing.peering.selectors.partners import acquaintances_all, is_suspended
from eventing.peering.selectors.peers import peers_active
from eventing.peering.services.acquaintances import acquaintance_begin, acquaintances_end
from eventing.peering.wire.client import PeerError, call
from eventing.replication.regions.messages import encode, link_message, link_message_taken, machine_message
from eventing.replication.scoring.comparison import links_compare
from eventing.replication.scoring.effects import avoided, links_demote
from eventing.replication.selectors.forwarding import participations
from eventing.replication.selectors.regions import Region, region_of, regions_found, regions_version
from eventing.replication.services.conduct import conduct_flush, conduct_note
from eventing.store.region_messages import region_messages_take

REGION_PATH = "/federation/v1/region"
REGIONS_S = 30.0  # between two reads of all regions: admissions expire without a change
MEMBERS_S = 3.0  # between two looks for changes: participants come and go, peers are approved, records appear
CALL_S = 3.0  # bound: seconds of a message about a link; the domain counts as unreachable
SENDERS = 8  # messages under way at once
FAILING_S = 8.0  # bound: seconds that delivery to an acquaintance may fail; its link ends and is asked for anew
ENDS: Mapping[Reason, AcquaintanceEnd] = {
    Reason.TRANSPORT: AcquaintanceEnd.UNREACHABLE,
    Reason.QUARANTINE: AcquaintanceEnd.MISBEHAVIOUR,
}
"""Reasons of an acquaintance's end; the other reasons of the link machine are AcquaintanceEnd.LINK."""
log = logging.getLogger(__name__)


class RegionUpkeep:
    """The views of this process, and what was read last.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._views = RegionViews(config().domain, random.SystemRandom())
        self._regions: dict[str, Region] = {}
        self._version: tuple[object, ...] | None = None
        self._read_at = self._members_at = self._faults_at = float("-inf")
        self._faults: dict[str, int] = {}

    def sweep(self) -> int:
        """Bring links and acquaintances up to date. Returns how many acquaintances began or ended.

        Raises redis.RedisError.
        """
        rows = {row.name: row for row in acquaintances_all()}
        if config().overlay == "peers" or directory_record.provider is None:
            self._views = RegionViews(config().domain, random.SystemRandom())
            self._version = None
            return acquaintances_end(names=rows, reason=AcquaintanceEnd.SETTING) if rows else 0
        now, at = self._clock(), timezone.now()
        self._read(now, at, rows)
        self._receive(now, at, rows)
        self._views.tick(now)
        self._judge(now, at, rows)
        self._send(now)
        return self._follow(now, at, rows)

    def _read(self, now: float, at: datetime, rows: Mapping[str, Acquaintance]) -> None:
        """Read the regions if participations changed, and their candidates."""
        if self._version is not None and now - self._members_at < MEMBERS_S:
            return
        self._members_at = now
        version = regions_version()
        if version != self._version or now - self._read_at >= REGIONS_S:
            self._regions = regions_found(at)
            self._version, self._read_at = version, now
        peers = {peer.name for peer in peers_active()}
        names = {name for region in self._regions.values() for name in region.participants} - {config().domain}
        groups = {name: sponsor for name in sorted(names - peers) if (sponsor := _identified(name)) is not None}
        shunned = avoided()
        groups = {name: group for name, group in groups.items() if not shunned.condemns(name)}
        members = {
            region.id: RegionMembers(
                {
                    name: groups[name]
                    for name in region.participants
                    if name in groups and (name in rows or shunned.chooses(region.id, name))
                },
                len(peers.intersection(region.participants)),
            )
            for region in sorted(self._regions.values())
        }
        self._views.update(members, [name for name in rows if name in groups], now)

    def _receive(self, now: float, at: datetime, rows: Mapping[str, Acquaintance]) -> None:
        """Take in what gateways received."""
        taken = [link_message_taken(data) for data in region_messages_take()]
        who = participations([one.message.rp for one in taken])
        found = [region_of(who[one.message.rp], at) for one in taken]
        if any(region not in self._regions for region in found):  # an admission is newer than the last read
            self._version = None
            self._read(now, at, rows)
        for one, region in zip(taken, found, strict=True):
            self._views.received(region, one.sender, machine_message(one.message), now)

    def _judge(self, now: float, at: datetime, rows: Mapping[str, Acquaintance]) -> None:
        """End the links with domains to which delivery fails, or that misbehave."""
        for row in rows.values():
            failing_s = (at - row.first_failure_at).total_seconds() if row.first_failure_at is not None else 0.0
            if row.failures and (failing_s >= FAILING_S or Failure(row.failure) in STOPS):
                self._views.down(row.name, now)
        if now - self._faults_at < FAULTS_S:
            return
        self._faults_at = now
        counts = misbehaviour_counts(list(rows))
        for name, count in counts.items():
            if count - self._faults.get(name, count) >= FAULTS_MAX:
                log.warning("The acquaintance %s ends: %d faults within %d s.", name, FAULTS_MAX, FAULTS_S)
                self._views.quarantine(name, now)
                conduct_note(Deed.INVALID, peer=name, count=FAULTS_MAX)
        self._faults = {name: counts.get(name, 0) for name in rows}

    def _send(self, now: float) -> None:
        """Send the machines' messages, and take in what became of them."""
        messages, self._views.outbox = self._views.outbox, []
        if not messages:
            return
        with ThreadPoolExecutor(min(SENDERS, len(messages)), thread_name_prefix="regions") as threads:
            for message, failed in zip(messages, threads.map(self._sent, messages), strict=True):
                if failed is None or failed.kind == "busy":  # a request that is not answered is repeated
                    continue
                if failed.kind == "unreachable":
                    self._views.down(message.peer, now)
                else:
                    self._views.refused(message.region, message.peer, now)

    def _sent(self, message: RegionMessage) -> PeerError | None:
        try:
            record = identity(message.peer).record
            if record is not None:
                rp = self._regions[message.region].rp
                call(record.url, message.peer, REGION_PATH, encode(link_message(rp, message.message)), CALL_S)
        except PeerError as error:
            log.info("%s did not take a message about a link: %s", message.peer, error.detail)
            return error
        finally:
            connection.close()
        return None

    def _follow(self, now: float, at: datetime, rows: Mapping[str, Acquaintance]) -> int:
        """Begin, renew and end acquaintances as the links stand."""
        changes = 0
        linked = self._views.linked()
        looked = self._members_at == now  # addresses are compared as often as members are read
        for name in sorted(linked):
            row = rows.get(name)
            lasts = row is not None and (row.expires_at - at).total_seconds() > LEASE_S / 2
            if lasts and not looked:
                continue
            record = identity(name).record
            if record is None:
                continue  # no candidate any more: the next look at the members ends the link
            if row is not None and lasts and row.url == record.url:
                continue
            if acquaintance_begin(name=name, record=record, reason=self._reason(name), now=at):
                changes += row is None
            else:
                self._views.drop(name, now)
        ended = sorted(rows.keys() - linked)
        for name in ended:
            reason = self._views.reasons.pop(name, Reason.LEAVING)
            if avoided().condemns(name):
                reason = Reason.QUARANTINE
            why = ENDS.get(reason, AcquaintanceEnd.LINK if _identified(name) is not None else AcquaintanceEnd.IDENTITY)
            changes += acquaintances_end(names=[name], reason=why, now=at)
        for name in self._views.reasons.keys() - linked - rows.keys():
            del self._views.reasons[name]
        return changes

    def _reason(self, name: str) -> str:
        shared = sum(region.rps for region in self._regions.values() if name in region.participants)
        noun = "rendezvous point" if shared == 1 else "rendezvous points"
        return f"Both are admitted to {shared} {noun}."


def _identified(name: str) -> str | None:
    """Return the sponsor of a domain that may be an acquaintance (empty for unknown); None if it may not."""
    found = identity(name)
    if found.record is None or not found.record.url or is_suspended(name):
        return None
    if not found.verified:
        if not found.contradicted:
            document_fetch_soon(name, found.record)
        return None
    return found.record.sponsor


_upkeep = per_process(RegionUpkeep)


def regions_sweep() -> int:
    """Bring this process's links of regions and the acquaintances up to date; see RegionUpkeep.sweep. Show the process of the overlay what
    links do, and let what follows from their scores happen.
    """
    changes = _upkeep().sweep()
    conduct_flush()
    links_compare()
    links_demote()
    return changes
