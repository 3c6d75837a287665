"""Assembly of this domain's overlay member: machines with real records, keys, founders, and the directory from before."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from eventing.conf import config
from eventing.membership.process.candidates import LiveCandidates
from eventing.membership.process.own_rows import RowSigner, RowVerifier
from eventing.membership.process.routes import READ_S, Routes
from eventing.membership.rules.link_counts import link_parameters
from eventing.membership.rules.records import RecordVerifier, fingerprint_of, identity_of
from eventing.membership.selectors.directory import directory_identity, directory_record, directory_records
from eventing.membership.selectors.membership import founders
from eventing.membership.services.own_record import own_record_issue
from eventing.membership.wire.endpoint import PEERS_ONLY
from eventing.membership.wire.verification import pinned
from eventing.overlay.directory import RECORDS_MAX, DomainDirectory
from eventing.overlay.directory_messages import Records
from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.directory_table import DirectoryTable
from eventing.overlay.machine import Chance, MessageReceived, SetTimer
from eventing.overlay.member import OverlayMember
from eventing.overlay.whole_member import whole_member

HASHES_CACHED = 4096
RESTORED = ""
"""Sender of records that were held before a restart."""


def key_hash(domain: Any) -> int:
    """Return 64 bits of a domain's name, the same at every domain."""
    return int.from_bytes(blake2b(str(domain).encode(), digest_size=8).digest(), "big")


class LiveTable(DirectoryTable):
    """The table of the one directory of this process; `on_hold` is called with each record that is held."""

    def __init__(self, on_hold: Callable[[DomainRecord], None]) -> None:
        super().__init__(lru_cache(HASHES_CACHED)(key_hash))
        self._on_hold = on_hold

    def hold(self, record: DomainRecord) -> int:
        """Hold a record; the number of its domain."""
        self._on_hold(record)
        return super().hold(record)


def member_make(
    on_hold: Callable[[DomainRecord], None], started_s: float, chance: Chance
) -> tuple[OverlayMember, Routes, list[SetTimer]]:
    """Make the member with the directory from before, the routes, and the timers of the restored directory.

    Args:
        started_s: seconds since 1970 at the time 0 of the machines.
    """
    me, roots, peers_only = config().domain, founders(), config().overlay == PEERS_ONLY
    directory: DomainDirectory

    def pin(name: str) -> str | None:
        record = directory.record(name)
        if name in roots:
            return roots[name]
        peer = routes.peers.get(name)
        if peer is not None:
            return peer.fingerprint
        return fingerprint_of(record) if record is not None else pinned(name)

    def identity(name: str) -> str | None:
        past = directory.past.get(name)
        return identity_of(past) if past is not None else directory_identity(name)

    verifier = RecordVerifier(pin, lambda name: directory.record(name), identity)
    directory = DomainDirectory(
        me,
        LiveTable(on_hold),
        issue=own_record_issue,
        genuine=verifier,
        founders=frozenset(roots),
        started_s=started_s,
        remembered=lambda name: directory_record(name, expired=True),
    )
    routes = Routes(directory, peers_only)
    routes.read(0.0)
    timers = _restore(directory, me, chance)
    routes.read(READ_S)
    member = whole_member(
        me,
        directory,
        issue=RowSigner(),
        genuine=RowVerifier(directory.record, directory_identity),
        key_hash=lru_cache(HASHES_CACHED)(key_hash),
        parameters=link_parameters(directory.count),
        anchors=routes.anchors(),
        started_s=started_s,
    )
    member.links.candidates = LiveCandidates(directory, frozenset(roots), lambda: routes.peers, peers_only)
    return member, routes, timers


def _restore(directory: DomainDirectory, me: str, chance: Chance) -> list[SetTimer]:
    """Give the directory the records from before; the own one is issued anew. Expired records are refused as any."""
    held = [record for record in directory_records() if record.domain != me]
    timers = []
    for first in range(0, len(held), RECORDS_MAX):
        batch = Records(tuple(held[first : first + RECORDS_MAX]))
        outputs = directory.handle(MessageReceived(RESTORED, batch), 0.0, chance, ())
        timers += [output for output in outputs if type(output) is SetTimer]
    return timers
