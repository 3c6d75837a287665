"""Reads of domain documents, of this domain and of trusted domains: keys and addresses."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from eventing.access.models import DomainKey
from eventing.conf import config
from eventing.core.container import memoized
from eventing.core.signing import Signed
from eventing.peering.models import DomainDocument
from eventing.peering.rules.domain_documents import KEYS_MAX, BadDocument, read
from eventing.peering.rules.domain_documents import VerifiedDomainDocument as Document
from eventing.sql.remembered import remembered, remembers

FEW_DOCUMENTS = 32  # of some KiB each: read at once
REFUSED_LOGGED = 256  # stored documents that are logged once each
log = logging.getLogger(__name__)


def domain_known(name: str) -> bool:
    """Return whether keys of this domain are held: it is this one, or its document was pinned or vouched for."""
    return name == config().domain or DomainDocument.objects.filter(name=name).exists()


def domain_keys(name: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the domain's public JWKs by kid, with `nbf` and maybe `exp` (Unix seconds), expired ones too; empty if
    unknown.
    """
    if name == config().domain:
        return {key["kid"]: {part: key[part] for part in key if part != "d"} for key in own_keys()}
    document = domain_document(name)
    return document.jwks if document is not None else {}


def document_fingerprint(name: str) -> str | None:
    """Return the fingerprint of a domain whose document is trusted; None if there is none."""
    return DomainDocument.objects.filter(name=name).values_list("fingerprint", flat=True).first()


def domain_document(name: str) -> Document | None:
    """Return the trusted document of the domain; None if there is none."""
    statement = domain_statement(name)
    return read(statement) if statement is not None else None


def domain_statement(name: str) -> Signed | None:
    """Return the trusted document as signed, for passing on. This domain's own may be out of date: `own_document`
    issues it.
    """
    few = _documents_if_few() if remembers() else None
    row = DomainDocument.objects.filter(name=name).first() if few is None else few.get(name)
    return row.statement if row is not None and _is_valid(row) else None


@remembered
def _documents_if_few() -> dict[str, DomainDocument] | None:
    """Return the documents of all known domains by name; None where they are more than FEW_DOCUMENTS."""
    rows = list(DomainDocument.objects.all()[: FEW_DOCUMENTS + 1])
    return {row.name: row for row in rows} if len(rows) <= FEW_DOCUMENTS else None


def domain_statements(names: list[str]) -> list[Signed]:
    """Return the signed documents of the known ones of these domains."""
    rows = DomainDocument.objects.filter(name__in=names).order_by("name")
    return [row.statement for row in rows if _is_valid(row)]


def _is_valid(row: DomainDocument) -> bool:
    """Return whether a stored document is valid by today's rules; an older release may have accepted an invalid one."""
    try:
        read(row.statement)
    except BadDocument as error:
        _refused(row.name, row.serial, str(error))
        return False
    return True


@memoized(maxsize=REFUSED_LOGGED)
def _refused(name: str, serial: int, problem: str) -> None:
    log.warning("The stored document %d of %s and its keys are no longer used: %s", serial, name, problem)


def own_fingerprint() -> str | None:
    """Return the kid of this domain's first key, by which other domains recognise it; None before it has a key."""
    keys = own_keys()
    return str(keys[0]["kid"]) if keys else None


def own_serial() -> int:
    """Return the serial of this domain's latest document; 0 before the first."""
    document = DomainDocument.objects.filter(name=config().domain).only("serial").first()
    return document.serial if document is not None else 0


def own_keys() -> list[dict[str, Any]]:
    """Return this domain's private JWKs as its document lists them, each with `kid`, `nbf` and maybe `exp`: the first
    key, then the newest, the older ones first. None before the domain has a key.
    """
    oldest = list(DomainKey.objects.order_by("created_at", "kid")[:1])
    newest = list(DomainKey.objects.order_by("-created_at", "-kid")[:KEYS_MAX])
    later = [key for key in reversed(newest) if key not in oldest]
    return [
        {
            **key.private_jwk,
            "kid": key.kid,
            "nbf": int(key.not_before.timestamp()),
            **({"exp": int(key.not_after.timestamp())} if key.not_after else {}),
        }
        for key in oldest + later[-(KEYS_MAX - 1) :]
    ]
