"""Checks of the peering: what other administrators compare, and which peers wait for somebody."""

from __future__ import annotations

from django.db import DatabaseError

from eventing.peering.models import Peer
from eventing.peering.rules.domain_documents import fingerprint_shown
from eventing.peering.selectors.domain_documents import own_keys
from eventing.peering.selectors.peers import peers_all
from portal.supervisor.diagnosis.findings import Finding, ok, warn

NAMED_MAX = 5


def peer_findings() -> list[Finding]:
    """The domain's fingerprint, how many peers there are, who asks to be one, and who cannot be told how we stand to it."""
    try:
        keys, peers = own_keys(), peers_all()
    except DatabaseError:  # the database's own finding says why
        return []
    found = [ok("fingerprint", fingerprint_shown(keys[0]["kid"]))] if keys else []
    active = sum(peer.active for peer in peers)
    found.append(ok("peers", f"{active} active of {len(peers)}" if peers else "none (herald peer add URL)"))
    asking = [peer for peer in peers if peer.state == "asked"]
    if asking:
        found.append(
            warn(
                "peers", f"{_named(asking)} would like to be a peer.", "herald peer show NAME, then approve or remove."
            )
        )
    missed = [peer for peer in peers if peer.hello_problem]
    if missed:
        found.append(
            warn("peers", f"{_named(missed)} cannot be told of changes here.", "herald peer show NAME says why.")
        )
    return found


def _named(peers: list[Peer]) -> str:
    names = ", ".join(peer.name for peer in peers[:NAMED_MAX])
    return names if len(peers) <= NAMED_MAX else f"{names} and {len(peers) - NAMED_MAX} more"
