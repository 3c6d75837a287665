"""Convictions: domains that signed contradictory statements, each with the proof, which is sent on once.

A proof convinces everybody who checks its signatures, so it needs no vote and cannot be turned against a domain that signed nothing
contradictory. A convicted domain gets no links; its record stays until it expires, as any other's, and the conviction stays as long.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from eventing.overlay.machine import Id

Proof = TypeVar("Proof")
PROOFS_MAX = 4096  # bound: domains with a proof against them; further proofs are discarded
PROOFS_RELAYED = 16  # bound: proofs sent on per announcement; the others follow in the next


class Convictions(Generic[Proof]):
    """The proofs that one domain holds."""

    def __init__(self) -> None:
        self._proofs: dict[Id, Proof] = {}
        self._fresh: dict[Id, Id] = {}

    def __contains__(self, domain: Id) -> bool:
        return domain in self._proofs

    def __len__(self) -> int:
        return len(self._proofs)

    def against(self, domain: Id) -> Proof | None:
        """The proof against a domain."""
        return self._proofs.get(domain)

    def add(self, domain: Id, proof: Proof, peer: Id) -> bool:
        """Hold the first proof against a domain, to be sent on to all but the peer that sent it. Return whether it is the first."""
        if domain in self._proofs or len(self._proofs) >= PROOFS_MAX:
            return False
        self._proofs[domain] = proof
        self._fresh[domain] = peer
        return True

    def relay(self) -> list[tuple[Id, Proof]]:
        """The next proofs to send on, each with the peer that sent it."""
        taken = list(self._fresh.items())[:PROOFS_RELAYED]
        for domain, _ in taken:
            del self._fresh[domain]
        return [(peer, self._proofs[domain]) for domain, peer in taken]

    def discard(self, domain: Id) -> None:
        """Forget a domain that is in the directory no more."""
        self._proofs.pop(domain, None)
        self._fresh.pop(domain, None)
