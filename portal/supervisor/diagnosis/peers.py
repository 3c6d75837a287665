"""Checks of peering: the fingerprint, and peers that need an administrator."""

from __future__ import annotations

from django.db import DatabaseError

from eventing.peering.models import Peer
from eventing.peering.rules.domain_documents import fingerprint_shown
from eventing.peering.selectors.domain_documents import own_keys
from eventing.peering.selectors.peers import peers_all
from portal.supervisor.diagnosis.findings import DiagnosisFinding, ok, warn

NAMED_MAX = 5


def peer_findings() -> list[DiagnosisFinding]:
    """Check peers: the domain's fingerprint, the number of peers, pending requests, and peers that could not be
    notified."""
    try:
        keys, peers = own_keys(), peers_all()
    except DatabaseError:  # the finding about the database states the reason
        return []
    found = [ok("fingerprint", fingerprint_shown(keys[0]["kid"]))] if keys else []
    active = sum(peer.active for peer in peers)
    found.append(ok("peers", f"{active} active of {len(peers)}" if peers else "none (herald peer add URL)"))
    asking = [peer for peer in peers if peer.state == "asked"]
    if asking:
        found.append(
            warn(
                "peers",
                f"{_named(asking)} requested to become a peer.",
                "Run herald peer show NAME, then approve or remove the peer.",
            )
        )
    missed = [peer for peer in peers if peer.hello_problem]
    if missed:
        found.append(
            warn(
                "peers",
                f"{_named(missed)} could not be notified of changes here.",
                "Run herald peer show NAME for the reason.",
            )
        )
    return found


def _named(peers: list[Peer]) -> str:
    names = ", ".join(peer.name for peer in peers[:NAMED_MAX])
    return names if len(peers) <= NAMED_MAX else f"{names} and {len(peers) - NAMED_MAX} more"
