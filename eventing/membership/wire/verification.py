"""Verification of records against what this domain has stored: pinned fingerprints, founders, the directory."""

from __future__ import annotations

from collections.abc import Sequence

from eventing.core.errors import Forbidden
from eventing.membership.rules.records import RecordVerifier, fingerprint_of, identity_of
from eventing.membership.selectors.directory import directory_fingerprint, directory_identity, directory_record
from eventing.membership.selectors.membership import founders
from eventing.overlay.directory_records import AHEAD_S, EXPIRY_S, DomainRecord
from eventing.peering.rules.peers import PeeringState
from eventing.peering.selectors.domain_documents import document_fingerprint
from eventing.peering.selectors.peers import peer_get


def pinned(name: str) -> str | None:
    """Return the fingerprint that is trusted for a domain; None if none is known."""
    peer = peer_get(name)
    if peer is not None and peer.state != PeeringState.ASKED:
        return str(peer.fingerprint)
    return directory_fingerprint(name) or document_fingerprint(name) or founders().get(name)


def chain_verified(chain: Sequence[DomainRecord], now_s: float) -> None:
    """Verify the records that a domain presents of itself, its sponsor and so on, up to one that is in the directory.

    Raises Forbidden: the sender is not admitted by them, or is not the domain that they are of.
    """
    trusted = founders()
    above: list[DomainRecord] = []
    for record in chain:
        above.append(record)
        if directory_record(record.domain) is not None and record is not chain[0]:
            break
    presented = {record.domain: record for record in above}

    def held(name: str) -> DomainRecord | None:
        return directory_record(name)

    def ancestor(name: str) -> str | None:
        known = directory_identity(name)
        record = presented.get(name)
        return known if known is not None or record is None else identity_of(record)

    verifier = RecordVerifier(pinned, held, ancestor)
    for at, record in enumerate(reversed(above)):
        sender = at == len(above) - 1
        runs = now_s < record.expires_s <= record.issued_s + EXPIRY_S and record.issued_s <= now_s + AHEAD_S
        if sender and not runs:
            raise Forbidden("The record that was presented has expired, or is of the future: compare the clocks.")
        if record.sponsorship is None:
            rooted = trusted.get(record.domain) == fingerprint_of(record)
        else:
            rooted = at > 0 or directory_identity(record.sponsorship.sponsor) is not None
        if not rooted:
            raise Forbidden(f"{record.domain} is not admitted to the directory here.")
        problem = verifier.problem(record)
        if problem:
            raise Forbidden(f"The record of {record.domain} is not genuine: it has {problem}.")
