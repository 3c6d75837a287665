"""Domain documents of domains that the directory names and that nobody has brought yet: fetched from the directory's
address, and accepted if their first key is the directory's.

Fetching happens on a thread of its own; a caller that needs the document asks again. Anybody can call in a name of the
directory, so fetches are few: FETCHES_PER_S in all, one domain at most once in AGAIN_S.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from django.db import Error as DatabaseError
from django.db import connection

from eventing.access.rules.rates import Bucket, Rate
from eventing.access.verification.fetching import FetchFailed
from eventing.core.container import per_process
from eventing.core.errors import ApplicationError
from eventing.peering.peer_documents import document_fetch
from eventing.peering.ports import DirectoryRecord
from eventing.peering.rules.domain_documents import BadDocument
from eventing.peering.selectors.identities import identities_forget, identity
from eventing.peering.selectors.recent_keys import recent_keys_forget
from eventing.peering.services.domain_documents import document_accept

AGAIN_S = 10.0  # bound: seconds between two fetches of a domain's document; its requests are refused in between
FETCHES_PER_S = 2.0  # bound: documents fetched per second by a process; further ones are fetched later
REMEMBERED_MAX = 1000  # bound: domains whose last fetch a process remembers; the oldest may be fetched again early
log = logging.getLogger(__name__)


def document_fetch_identified(name: str) -> bool:
    """Fetch and accept the document of a domain of the directory, unless it is held. Blocks for at most 5 s.

    Returns whether the held document has the directory's key afterwards.
    """
    found = identity(name)
    if found.verified or found.record is None or found.contradicted:
        return found.verified
    _fetch(name, found.record)
    return identity(name).verified


class DirectoryFetching:
    """Fetches under way and done lately, guarded by a lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rate = Bucket(Rate(FETCHES_PER_S, AGAIN_S))
        self._begun: OrderedDict[str, float] = OrderedDict()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="directory-documents")

    def begin(self, name: str, record: DirectoryRecord) -> None:
        """Fetch soon, unless that was begun within AGAIN_S, or the rate is used up."""
        with self._lock:
            now = time.monotonic()
            if now - self._begun.get(name, -AGAIN_S) < AGAIN_S or not self._rate.take(1, now):
                return
            self._begun[name] = now
            self._begun.move_to_end(name)
            if len(self._begun) > REMEMBERED_MAX:
                self._begun.popitem(last=False)
        self._threads.submit(_fetch_on_thread, name, record)


def _fetch_on_thread(name: str, record: DirectoryRecord) -> None:
    try:
        _fetch(name, record)
    finally:
        connection.close()


def _fetch(name: str, record: DirectoryRecord) -> None:
    if not record.url:
        return
    try:
        document_accept(document_fetch(record.url), fingerprint=record.fingerprint)
    except (FetchFailed, BadDocument, ApplicationError, DatabaseError) as error:
        log.info("The document of %s, which the directory names, is not accepted: %s", name, error)
    identities_forget()
    recent_keys_forget()


_fetching = per_process(DirectoryFetching)


def document_fetch_soon(name: str, record: DirectoryRecord) -> None:
    """Fetch the document of a domain of the directory in this process; see DirectoryFetching.begin."""
    _fetching().begin(name, record)
