"""Domain documents: this domain's is issued, those of others are pinned, followed and forgotten (peering/rules/domain_documents.py).

Who may be trusted first is for the caller to know: an administrator who compared the fingerprint (peering/services/peers.py), or
the home of a rendezvous point that admitted the domain (replication/services/replicas.py).
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from eventing.access.services.keys import ensure_domain_key
from eventing.conf import config
from eventing.core.signing import Signed
from eventing.peering.models import DomainDocument
from eventing.peering.rules.domain_documents import (
    VERSIONS,
    BadDocument,
    Claim,
    claimed,
    follows,
    make,
    read,
    signed_now,
    trusted_now,
)
from eventing.peering.rules.domain_documents import DomainDocument as Document
from eventing.peering.selectors.domain_documents import domain_document, domain_statement, own_keys
from eventing.sql.locking import lock_domain

DOCUMENTS_MAX = 10_000  # of other domains: peers, and those that homes of rendezvous points here have admitted
log = logging.getLogger(__name__)


def own_document(*, now: datetime | None = None) -> Signed:
    """This domain's document, issued anew if its keys or its address have changed since it was issued last."""
    now = now or timezone.now()
    row = DomainDocument.objects.filter(name=config().domain).first()
    if row is not None and _is_current(read(row.statement), own_keys()):
        return row.statement
    ensure_domain_key(now=now)
    with transaction.atomic():
        lock_domain()
        keys = own_keys()
        row = DomainDocument.objects.filter(name=config().domain).first()
        if row is not None and _is_current(read(row.statement), keys):
            return row.statement
        # Where the database was put back from a copy, the clock is past every serial that was ever issued.
        serial = max(row.serial + 1 if row is not None else 1, int(now.timestamp() * 1000))
        content = {**_content(), "serial": serial, "issued_at": int(now.timestamp())}
        statement = make(content, keys)
        _store(read(statement), statement, now)
    log.info("The domain document with serial %d was issued.", serial)
    return statement


def document_pin(statement: Signed, *, fingerprint: str, now: datetime | None = None) -> Document:
    """Trust a domain by its fingerprint, whatever was trusted before; an administrator says so. Raises BadDocument.

    What is trusted already and newer stays.
    """
    now = now or timezone.now()
    document = _acceptable(statement, fingerprint, now)
    with transaction.atomic():
        lock_domain()
        held = domain_document(document.domain)
        if held is not None and held.fingerprint == document.fingerprint and held.serial >= document.serial:
            return held
        _bounded(document.domain)
        _store(document, statement, now)
    return document


def document_accept(statement: Signed, *, fingerprint: str | None = None, now: datetime | None = None) -> Document:
    """Take over a document that came along, if it follows the one that is trusted for its domain.

    Args:
        fingerprint: the one that somebody trusted vouches for: the first document of a domain is taken with it only.

    Of one that is of no use here (nobody knows the domain, we hold it or a newer one, no trusted key signed it) at most one
    signature is looked at: a peer may send many. Returns the document that is trusted now, which may be the one held before.
    Raises BadDocument.
    """
    now = now or timezone.now()
    claim = claimed(statement)
    name, serial = claim.domain, claim.serial
    if name == config().domain:
        held = domain_document(name)
        if held is None:
            raise BadDocument("The domain document is in our own name.")
        return held
    known = domain_statement(name)
    held = read(known) if known is not None else None
    if held is not None and (serial < held.serial or (known is not None and statement.payload == known.payload)):
        return _of_fingerprint(held, fingerprint)
    if held is not None:
        _of_fingerprint(held, fingerprint)
        _require_signed(statement, claim, held, now)
    elif fingerprint is None:
        raise _unknown(name)
    document = read(statement)
    with transaction.atomic():
        lock_domain()
        held = domain_document(name)
        if held is not None:
            if not follows(document, _of_fingerprint(held, fingerprint), now.timestamp()):
                return held
        elif fingerprint is None:
            raise _unknown(name)
        else:
            _acceptable(statement, fingerprint, now)
            _bounded(name)
        _store(document, statement, now)
    log.info("The domain document of %s with serial %d was taken over.", name, serial)
    return document


def document_forget(name: str) -> None:
    """Trust this domain no longer. Nobody may need its keys any more: no peering, no replica."""
    if name != config().domain:
        DomainDocument.objects.filter(name=name).delete()


def _of_fingerprint(held: Document, fingerprint: str | None) -> Document:
    if fingerprint is not None and fingerprint != held.fingerprint:
        raise BadDocument(f"The fingerprint of {held.domain} is another one than we trust.")
    return held


def _require_signed(statement: Signed, claim: Claim, held: Document, now: datetime) -> None:
    """Raises BadDocument for what could only be refused after each of its signatures was looked at."""
    if claim.fingerprint != held.fingerprint:
        raise BadDocument(f"The fingerprint of {held.domain} is another one than before.")
    if not signed_now(statement, held.jwks, now.timestamp()):
        raise BadDocument(f"The domain document is not signed by a key that is trusted for {held.domain} now.")


def _unknown(name: str) -> BadDocument:
    return BadDocument(f"The domain {name} is not known here; an administrator adds it as a peer.")


def _acceptable(statement: Signed, fingerprint: str, now: datetime) -> Document:
    """The document, if it is fit to be the first one that is trusted: the fingerprint's, and signed by a key in use."""
    document = read(statement)
    if document.domain == config().domain:
        raise BadDocument("The domain document is in our own name (HERALD_DOMAIN).")
    if document.fingerprint != fingerprint:
        raise BadDocument(f"The fingerprint of {document.domain} is another one than was given.")
    if not trusted_now(document, document.jwks, now.timestamp()):
        raise BadDocument("The domain document is not signed by a key that may sign now; compare the two clocks.")
    return document


def _bounded(name: str) -> None:
    others = DomainDocument.objects.exclude(name__in=(name, config().domain))
    if others.count() >= DOCUMENTS_MAX:
        raise BadDocument(f"Documents of {DOCUMENTS_MAX} domains are kept, and no more.")


def _content() -> dict[str, Any]:
    base = config().base_url
    return {
        "domain": config().domain,
        "url": base,
        "websocket": f"ws{base.removeprefix('http')}/ws",
        "versions": list(VERSIONS),
    }


def _is_current(document: Document, keys: list[dict[str, Any]]) -> bool:
    content = _content()
    said = {name: getattr(document, name) for name in content}
    windows = [(key["kid"], key["nbf"], key.get("exp")) for key in keys]
    listed = [(kid, jwk["nbf"], jwk.get("exp")) for kid, jwk in document.jwks.items()]
    return said == {**content, "versions": VERSIONS} and windows == listed


def _store(document: Document, statement: Signed, now: datetime) -> None:
    DomainDocument.objects.update_or_create(
        name=document.domain,
        defaults={
            "serial": document.serial,
            "fingerprint": document.fingerprint,
            "payload": statement.payload,
            "kids": statement.kid,
            "signature": statement.signature,
            "received_at": now,
        },
    )
