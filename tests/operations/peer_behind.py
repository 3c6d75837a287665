"""A peer that is behind, beside a running edge and in its environment: `python -m tests.operations.peer_behind`.

Shares a rendezvous point with the peer b.test, which takes 3 events and then lacks BEHIND, and prints the point's id; at
a line of input the peer takes those as well. The peer is played; what is noted of it is the forwarder's own work.
"""

from __future__ import annotations

import sys

import django

django.setup()

from eventing.replication.forwarding import (  # noqa: E402
    comparing,
    outbound,
    sweeping,
    wakeups,
)
from eventing.store import peer_state  # noqa: E402
from tests.peering.other_domain import OtherDomain  # noqa: E402
from tests.replication.answering import FakePeer, publish, shared  # noqa: E402
from tests.replication.shared_rp import peer_made  # noqa: E402

PEER = "b.test"
BEHIND = 4


def behind() -> tuple[OtherDomain, str]:
    """The peer, and the id of the point of which it lacks BEHIND events."""
    outbound.begin = FakePeer().begin  # type: ignore[attr-defined, assignment]
    for pause in ("LINGER_S", "SPACING_S", "SOON_S"):
        setattr(outbound, pause, 0.0)
    comparing.UNDER_WAY_S = 0.0
    domain = OtherDomain(PEER)
    peer_made(domain)
    rp = shared(domain, 3)
    _forward(rp)
    publish(rp, BEHIND)
    _sweep()
    return domain, rp


def main() -> None:
    """See the module."""
    _, rp = behind()
    print(rp, flush=True)
    sys.stdin.readline()
    _forward(rp)
    _sweep()


def _forward(rp: str) -> None:
    wakeups.wake(PEER, [rp])
    outbound.forward(PEER)


def _sweep() -> None:
    """As each second in a domain; all is compared, however lately it was."""
    peer_state.compare_again([PEER])
    sweeping.peers_sweep()


if __name__ == "__main__":
    main()
