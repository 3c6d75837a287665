"""Acquaintances: domains below *peer*, identified by the federation's directory and trusted with nothing else. Pure.

The life of an acquaintance: two domains are admitted to one RP by its home -> the region's link machine
(overlay/links.py) makes a link between them -> each begins an acquaintance, and forwards to the other what both are
admitted to -> the link ends, the directory names another first key, or nothing renews the lease: the acquaintance ends.
When both administrators approve the peering, the peer takes its place and the links stay.

An acquaintance may send events of RPs at which both domains are admitted at that moment, and nothing else: it is shown
no proofs, hosts nothing, relays nothing, and is not listed among the peers.
"""

from __future__ import annotations

from enum import StrEnum

# Each costs a forwarding task's share, a kilobyte in every process, and a comparison of all shared RPs in 5 s.
ACQUAINTANCES_MAX = 128  # bound: acquaintances; a further link is dropped
# bound: seconds of an acquaintance's lease; it ends unless the region's link renews it
LEASE_S = 900
# Below a peer's (rules/peers.py). Forwarding sends 20 requests per second at most that are not full, to one of several gateways.
EVENTS_PER_S = 2000  # bound: events per second of an acquaintance; it is told to wait
BYTES_PER_S = 4 * 1024 * 1024  # bound: bytes per second of an acquaintance; it is told to wait
REQUESTS_PER_S = 80  # bound: requests per second of an acquaintance; 429
# bound: RPs shared with all acquaintances together, by acquaintance; further RPs are exchanged with peers only
LINKS_MAX = 50_000
# Admitted domains of an RP are at most 48 (rps/rules/statements.py).
DOCUMENTS_MAX = 16  # bound: domain documents of an acquaintance's request that are looked at; the others are ignored
# bound: requests per second of domains that are neither peers nor acquaintances, all together at a gateway; 429
IDENTIFIED_PER_S = 20.0
IDENTIFIED_BYTES_MAX = 64 * 1024  # bound: bytes of such a request; 413
# bound: counted faults of an acquaintance in one period of FAULTS_S; the acquaintance ends
FAULTS_MAX = 20
FAULTS_S = 60.0


class AcquaintanceEnd(StrEnum):
    """Reason why an acquaintance ended."""

    LINK = "link-ended"  # dropped by either side's link machine, or no RP is shared any more
    UNREACHABLE = "unreachable"
    IDENTITY = "identity"  # the directory names no such domain, or another first key
    MISBEHAVIOUR = "misbehaviour"
    APPROVED = "approved"  # it is a peer now
    SUSPENDED = "suspended"  # an administrator suspended it as a peer
    SETTING = "setting"  # HERALD_OVERLAY forbids it
    EXPIRED = "lease-expired"
