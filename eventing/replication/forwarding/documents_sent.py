"""Which domain documents each peer has been sent along with runs: what signs a run must be known before it is judged.

A domain that rotates its keys tells its own peers; a run that it signed with the new key may come to others by a carrier,
and sooner. So whoever carries runs sends the documents of their origins first, each once for each serial. What was told
is remembered by process: after a start it is told once more, which costs a few hundred bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

from eventing.conf import config
from eventing.core.signing import Signed
from eventing.peering.rules.domain_documents import read
from eventing.peering.selectors.domain_documents import domain_statement
from eventing.peering.selectors.recent_keys import Recent
from eventing.peering.services.domain_documents import own_document

REMEMBERED_MAX = 20_000  # pairs of peer and origin, the oldest forgotten first; ~200 bytes each


def _held(name: str) -> tuple[int, Signed] | None:
    statement = own_document() if name == config().domain else domain_statement(name)
    return None if statement is None else (read(statement).serial, statement)


_recent = Recent[tuple[int, Signed] | None](_held)
_lock = Lock()
_told: OrderedDict[tuple[str, str], int] = OrderedDict()


def documents_untold(peer: str, origins: Iterable[str]) -> dict[str, tuple[int, Signed]]:
    """Of these origins of runs, the documents (serial, statement) that the peer has not been sent; its own never."""
    found: dict[str, tuple[int, Signed]] = {}
    for origin in origins:
        held = None if origin == peer else _recent.get(origin)
        if held is not None and _told.get((peer, origin)) != held[0]:
            found[origin] = held
    return found


def documents_were_told(peer: str, documents: dict[str, tuple[int, Signed]]) -> None:
    """Note that the peer has answered a request that these came with."""
    with _lock:
        for origin, (serial, _) in documents.items():
            _told[peer, origin] = serial
            _told.move_to_end((peer, origin))
        while len(_told) > REMEMBERED_MAX:
            _told.popitem(last=False)


def documents_told_forget() -> None:
    """Have all of them read and told again: for tests, which change the database under this process."""
    _recent.forget()
    with _lock:
        _told.clear()
