"""Fetching of another domain's published document: for inspection, and when one of its keys is unknown here.

A peer announces new keys by itself (peering/wire/hello.py). Fetching covers lost announcements, and keys that are used
before they are announced. A forger who invents keys in a peer's name makes this domain fetch that peer's document at
most once in REFETCH_S.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

import httpx
from django.db import Error as DatabaseError
from django.db import connection

from eventing.access.verification.fetching import FetchFailed, fetch, host_of
from eventing.conf import config
from eventing.core import strict_json
from eventing.core.client_address import is_loopback
from eventing.core.container import per_process
from eventing.core.errors import ApplicationError
from eventing.core.signing import Signed
from eventing.peering.rules.domain_documents import BadDocument, from_published
from eventing.peering.selectors.domain_documents import domain_document
from eventing.peering.selectors.peers import peer_get
from eventing.peering.services.peers import peer_document_followed

DOCUMENT_PATH = "/.well-known/herald"
# bound: seconds between two fetches of a domain's document because of an unknown key; requests signed with the unknown key are refused in between
REFETCH_S = 30.0
THREADS = 2  # threads that fetch; a slow peer delays no request
REMEMBERED_MAX = 2000  # domains; more than there are peers, and only those that are known here are remembered
log = logging.getLogger(__name__)


def document_fetch(url: str) -> Signed:
    """Return the domain document published at `url` (of the domain, without a path). Blocks for at most 5 s.

    The document is not verified. Raises FetchFailed.
    """
    try:
        fetched = fetch(f"{url.rstrip('/')}{DOCUMENT_PATH}", private=_private(url))
    except FetchFailed as error:  # its text is about issuers of tokens
        text = str(error).replace("issuer", "domain").replace("PRIVATE_ISSUERS", "PRIVATE_PEERS")
        raise FetchFailed(text) from None
    return document_published(fetched.content)


def document_published(content: bytes) -> Signed:
    """Return the domain document in `content`, which a domain publishes at DOCUMENT_PATH; a saved copy is accepted too.

    Raises FetchFailed.
    """
    try:
        members = strict_json.parse(content)
        return from_published(members.get("document", members) if isinstance(members, dict) else members)
    except (strict_json.NotStrictJson, BadDocument):
        raise FetchFailed(
            f"The content of {DOCUMENT_PATH} is not a Herald domain document. Check that this is the address of a "
            "domain."
        ) from None


class Refetching:
    """Pending fetches of known domains' documents. Safe to use from several threads.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._asked: OrderedDict[str, tuple[Future[None], float]] = OrderedDict()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="peer-documents")

    def refetch(self, name: str) -> Future[None] | None:
        """Fetch the document of a domain that is known here, unless that was done within REFETCH_S.

        Returns a future that never raises and whose result does not show whether the document was new; None: not
        fetched.
        """
        now = self._clock()
        with self._lock:
            asked = self._asked.get(name)
            if asked is not None and (not asked[0].done() or now - asked[1] < REFETCH_S):
                return None if asked[0].done() else asked[0]
            future = self._threads.submit(self._work, name)
            self._asked[name] = (future, now)
            self._asked.move_to_end(name)
            if len(self._asked) > REMEMBERED_MAX:
                self._asked.popitem(last=False)
            return future

    def _work(self, name: str) -> None:
        if not _follow(name):
            with self._lock:
                self._asked.pop(name, None)


def _follow(name: str) -> bool:
    """Accept the domain's published document if it follows the trusted one; return False, without a fetch, for an
    unknown domain.

    Runs on a thread with a database connection of its own.
    """
    try:
        peer, held = peer_get(name), domain_document(name)
        if held is None:
            return False
        peer_document_followed(document_fetch(peer.url if peer is not None else held.url), name=name)
    except (FetchFailed, BadDocument, ApplicationError, DatabaseError) as error:
        log.warning("The document of %s was fetched because of an unknown key: %s", name, error)
    except Exception:
        log.exception("The document of %s could not be accepted.", name)
    finally:
        connection.close()
    return True


def _private(url: str) -> bool:
    """Return whether the domain at `url` may have a private or loopback address: by the settings, or because both
    domains do.
    """
    if config().allow_private_peers:
        return True
    try:
        return all(is_loopback(host_of(httpx.URL(one))) for one in (url, config().base_url))
    except httpx.InvalidURL:
        return False


_refetching = per_process(Refetching)


def document_refetch(name: str) -> Future[None] | None:
    """Fetch the document of a domain again in this process: see Refetching.refetch."""
    return _refetching().refetch(name)
