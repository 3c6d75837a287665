"""What the event loop hands over: records as WIDTH cells each of one flat list, and who they are about.

A flat list because its columns are slices (measured: 0.03 µs a record; to turn tuples into columns took 0.46 µs).
"""

from __future__ import annotations

from typing import Any

from eventing.core.names import is_id

Cells = list[Any]
"""Records one after the other, each of them: time (Unix seconds), who, operation, RP id, reason (empty: ok), events, bytes in, bytes out, latency (seconds), sessions, count."""

WIDTH = 11
"""Cells of one record."""

DELIVER = "deliver"
LOST = "records.lost"


class Who:
    """Whose record it is. Compared by identity, so that a record costs no hashing of names.

    Attributes:
        principal: `Principal.identity`; empty for a stranger without token.
        issuer: who vouches for the principal; empty for a stranger.
        client: kind of client: http, pull, sse, herald.v1, cloudevents, console, or gateway for the gateway itself.
        peer: the peer domain that asks; empty for clients.
        session: number of the session within its gateway, from 1; 0 where there is none.
    """

    __slots__ = ("__weakref__", "client", "issuer", "peer", "principal", "session")

    def __init__(self, principal: str, issuer: str, client: str, peer: str = "", session: int = 0) -> None:
        self.principal = principal
        self.issuer = issuer
        self.client = client
        self.peer = peer
        self.session = session


NOBODY = Who("", "", "")
"""Whose record it is as long as nobody has said so."""

GATEWAY = Who("", "", "gateway")
"""The gateway itself: its record says how many records were lost."""


def rp_or_nothing(reference: str) -> str:
    """`reference` if it has the form of an RP's id, else nothing: what a stranger wrote in its place is not recorded."""
    return reference if is_id(reference) else ""
