"""Fetching another domain's document from where it publishes it: to look at it, and when one of its keys is not known.

A peer whose keys change tells us (peering/wire/hello.py); this is for what was lost, and for keys that are used before
they are told. Whoever makes up keys in a peer's name has us ask that peer at most every REFETCH_S.
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

from eventing.access.verification.fetching import FetchFailed, fetch, host_of, is_loopback
from eventing.conf import config
from eventing.core import strict_json
from eventing.core.errors import HeraldError
from eventing.core.signing import Signed
from eventing.peering.rules.domain_documents import BadDocument, from_published
from eventing.peering.selectors.domain_documents import domain_document
from eventing.peering.selectors.peers import peer_get
from eventing.peering.services.peers import peer_document_followed

DOCUMENT_PATH = "/.well-known/herald"
REFETCH_S = 30.0  # between two fetches of one domain's document because of a key that it has not
THREADS = 2  # that fetch; a peer that is slow holds up no request
REMEMBERED_MAX = 2000  # domains; more than there are peers, and only those that are known here are remembered
log = logging.getLogger(__name__)


def document_fetch(url: str) -> Signed:
    """The domain document that is published at `url` (of the domain, without a path of ours). Blocks for at most 5 s.

    It is verified by nobody yet. Raises FetchFailed.
    """
    try:
        fetched = fetch(f"{url.rstrip('/')}{DOCUMENT_PATH}", private=_private(url))
    except FetchFailed as error:  # who fetches there speaks of issuers of tokens
        text = str(error).replace("issuer", "domain").replace("PRIVATE_ISSUERS", "PRIVATE_PEERS")
        raise FetchFailed(text) from None
    return document_published(fetched.content)


def document_published(content: bytes) -> Signed:
    """The domain document in what a domain publishes at DOCUMENT_PATH, also as somebody saved it. Raises FetchFailed."""
    try:
        members = strict_json.parse(content)
        return from_published(members.get("document", members) if isinstance(members, dict) else members)
    except (strict_json.NotStrictJson, BadDocument):
        raise FetchFailed(
            f"What is at {DOCUMENT_PATH} is not what a Herald domain publishes. Is this the address of a domain?"
        ) from None


class Refetching:
    """Documents that are being fetched again. Safe to use from several threads.

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

        Returns what to wait for: it never raises, and says nothing of whether there was anything new. None: not now.
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
    """Take over what the domain publishes, if it follows what we trust; False if it is not known here, and was not asked.

    On a thread with a connection of its own.
    """
    try:
        peer, held = peer_get(name), domain_document(name)
        if held is None:
            return False
        peer_document_followed(document_fetch(peer.url if peer is not None else held.url), name=name)
    except (FetchFailed, BadDocument, HeraldError, DatabaseError) as error:
        log.warning("The document of %s was asked for because of a key that it has not: %s", name, error)
    except Exception:
        log.exception("The document of %s could not be taken over.", name)
    finally:
        connection.close()
    return True


def _private(url: str) -> bool:
    """Whether the domain at `url` may be at a private address, or at a loopback one, by the settings or because both are."""
    if config().allow_private_peers:
        return True
    try:
        return all(is_loopback(host_of(httpx.URL(one))) for one in (url, config().base_url))
    except httpx.InvalidURL:
        return False


_refetching = Refetching()


def document_refetch(name: str) -> Future[None] | None:
    """Have this process fetch the document of a domain again: see Refetching.refetch."""
    return _refetching.refetch(name)
