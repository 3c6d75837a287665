"""Addresses of an RP that this domain does not serve (any more): for redirects of clients."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from eventing.conf import config
from eventing.core import names
from eventing.core.errors import ApplicationError, Gone, Moved, NotFound
from eventing.peering.selectors.domain_documents import domain_document
from eventing.replication.models import ReplicaEnd
from eventing.replication.selectors.replicas import participants
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.selectors.descriptors import descriptors_get

URLS_MAX = 16  # URLs in one redirect


def descriptors_or_moved(references: Sequence[str]) -> list[Descriptor | ApplicationError]:
    """Return `descriptors_get`, but Moved for an RP whose replica here ended recently; one query more if any is
    unknown.
    """
    found = descriptors_get(references)
    unknown = {one for one, answer in zip(references, found, strict=True) if isinstance(answer, NotFound | Gone)}
    if not unknown:
        return found
    moved = _moved({one: _reference(one) for one in unknown}, timezone.now())
    return [moved.get(one, answer) for one, answer in zip(references, found, strict=True)]


def replica_urls(rp: str) -> list[str]:
    """Return the known base URLs of the other domains that serve an RP, its home first."""
    row = RendezvousPoint.objects.filter(id=rp).first()
    if row is None:
        return []
    others = [one for one in participants(row, timezone.now()) if one.domain != config().domain]
    urls = [one.url or _url_of(one.domain) for one in others]
    return [url for url in urls if url][:URLS_MAX]


def _moved(references: dict[str, str], now: datetime) -> dict[str, ApplicationError]:
    """Return Moved for those references (each an id or a whole name) whose end is recorded with other addresses."""
    wanted = set(references.values())
    ends = ReplicaEnd.objects.filter(Q(rp__in=wanted) | Q(name__in=wanted - {""}), until__gt=now).exclude(urls=[])
    known = {key: end for end in ends for key in (end.name, end.rp)}
    return {
        reference: Moved(
            f"This domain no longer serves {reference}. Continue at one of the domains in `to`; cursors are valid "
            "there.",
            rp=known[key].rp,
            to=list(known[key].urls)[:URLS_MAX],
        )
        for reference, key in references.items()
        if key in known
    }


def _reference(reference: str) -> str:
    if names.is_id(reference):
        return reference
    try:
        return names.normalise(reference, config().domain)
    except ApplicationError:
        return reference


def _url_of(domain: str) -> str:
    document = domain_document(domain)
    return document.url if document is not None else ""
