"""Domain documents sent along with runs: the key that signed a run must be known before the run is validated.

A domain that rotates its keys notifies its own peers; a carrier may bring a run signed with the new key to other
domains sooner. So a carrier of runs sends the documents of their origins first, each once for each serial. What was
sent is remembered per process: after a start it is sent once more, which costs a few hundred bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.signing import Signed
from eventing.peering.rules.domain_documents import read
from eventing.peering.selectors.domain_documents import domain_statement
from eventing.peering.selectors.recent_keys import Recent
from eventing.peering.services.domain_documents import own_document

REMEMBERED_MAX = 20_000  # pairs of peer and origin, the oldest forgotten first; ~200 bytes each


def _held(name: str) -> tuple[int, Signed] | None:
    statement = own_document() if name == config().domain else domain_statement(name)
    return None if statement is None else (read(statement).serial, statement)


class _Sent:
    """The documents as read last, and the serials sent to peers, held under `lock`."""

    def __init__(self) -> None:
        self.recent: Recent[tuple[int, Signed] | None] = Recent(_held)
        self.lock = Lock()
        self.serials: OrderedDict[tuple[str, str], int] = OrderedDict()


sent = per_process(_Sent)


def documents_pending(peer: str, origins: Iterable[str]) -> dict[str, tuple[int, Signed]]:
    """Return those origins' documents (serial, statement) that the peer has not been sent, without its own."""
    found: dict[str, tuple[int, Signed]] = {}
    so_far = sent()
    for origin in origins:
        held = None if origin == peer else so_far.recent.get(origin)
        if held is not None and so_far.serials.get((peer, origin)) != held[0]:
            found[origin] = held
    return found


def documents_acknowledged(peer: str, documents: dict[str, tuple[int, Signed]]) -> None:
    """Record that the peer has answered a request with these documents."""
    so_far = sent()
    with so_far.lock:
        for origin, (serial, _) in documents.items():
            so_far.serials[peer, origin] = serial
            so_far.serials.move_to_end((peer, origin))
        while len(so_far.serials) > REMEMBERED_MAX:
            so_far.serials.popitem(last=False)
