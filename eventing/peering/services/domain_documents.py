"""Domain documents: issuing this domain's, and pinning, accepting and deleting those of others
(peering/rules/domain_documents.py).

The caller decides whom to trust first: an administrator who compared the fingerprint (peering/services/peers.py), or
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
    DocumentClaim,
    claimed,
    follows,
    make,
    read,
    signed_now,
    trusted_now,
)
from eventing.peering.rules.domain_documents import VerifiedDomainDocument as Document
from eventing.peering.selectors.domain_documents import domain_document, domain_statement, own_keys
from eventing.sql.locking import lock_domain

# Peers, and domains that homes of RPs here have admitted.
DOCUMENTS_MAX = 10_000  # bound: documents of other domains; a new document is refused
log = logging.getLogger(__name__)


def own_document(*, now: datetime | None = None) -> Signed:
    """Return this domain's document, issued anew if its keys or its address have changed since the last."""
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
        # After a restore of the database from a copy, the clock is past every serial that was ever issued.
        serial = max(row.serial + 1 if row is not None else 1, int(now.timestamp() * 1000))
        content = {**_content(), "serial": serial, "issued_at": int(now.timestamp())}
        statement = make(content, keys)
        _store(read(statement), statement, now)
    log.info("The domain document with serial %d was issued.", serial)
    return statement


def document_pin(statement: Signed, *, fingerprint: str, now: datetime | None = None) -> Document:
    """Trust a domain by its fingerprint, whatever was trusted before: an administrator's decision. Raises BadDocument.

    A document that is trusted already and newer is kept.

    Args:
        fingerprint: as the administrator compared it; must be the document's.
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
    """Accept a received document if it follows the trusted one of its domain.

    Args:
        fingerprint: the fingerprint that a trusted party vouches for; only with it is a domain's first document
            accepted.

    A peer may send many documents, so at most one signature is verified of a document that is of no use here: an
    unknown domain's, one not newer than the held one, or one that no trusted key signed. Returns the document that is
    trusted afterwards, which may be the one held before.
    Raises BadDocument.
    """
    now = now or timezone.now()
    claim = claimed(statement)
    name, serial = claim.domain, claim.serial
    if name == config().domain:
        held = domain_document(name)
        if held is None:
            raise BadDocument("The domain document has the name of this domain.")
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
    log.info("The domain document of %s with serial %d was accepted.", name, serial)
    return document


def document_forget(name: str) -> None:
    """Delete the document of a domain whose keys nothing needs any more: no peering, no replica."""
    if name != config().domain:
        DomainDocument.objects.filter(name=name).delete()


def _of_fingerprint(held: Document, fingerprint: str | None) -> Document:
    if fingerprint is not None and fingerprint != held.fingerprint:
        raise BadDocument(f"The fingerprint of {held.domain} is not the trusted one.")
    return held


def _require_signed(statement: Signed, claim: DocumentClaim, held: Document, now: datetime) -> None:
    """Raise BadDocument for a document that would be refused after all its signatures were verified."""
    if claim.fingerprint != held.fingerprint:
        raise BadDocument(f"The fingerprint of {held.domain} has changed.")
    if not signed_now(statement, held.jwks, now.timestamp()):
        raise BadDocument(f"The domain document is not signed by a key that is trusted for {held.domain} now.")


def _unknown(name: str) -> BadDocument:
    return BadDocument(f"The domain {name} is not known here. An administrator has to add it as a peer.")


def _acceptable(statement: Signed, fingerprint: str, now: datetime) -> Document:
    """Return the document if it may be trusted first: it has the fingerprint, and a key in use signed it."""
    document = read(statement)
    if document.domain == config().domain:
        raise BadDocument("The domain document has the name of this domain (HERALD_DOMAIN).")
    if document.fingerprint != fingerprint:
        raise BadDocument(f"The fingerprint of {document.domain} is not the one that was given.")
    if not trusted_now(document, document.jwks, now.timestamp()):
        raise BadDocument(
            "The domain document is not signed by a key that may sign now. Compare the clocks of the two domains."
        )
    return document


def _bounded(name: str) -> None:
    others = DomainDocument.objects.exclude(name__in=(name, config().domain))
    if others.count() >= DOCUMENTS_MAX:
        raise BadDocument(f"Documents of {DOCUMENTS_MAX} domains are stored already, which is the most.")


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
