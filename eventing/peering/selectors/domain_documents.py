"""Reads of domain documents: which keys are whose, and where a domain is. Of this domain and of those that are trusted."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from eventing.access.models import DomainKey
from eventing.conf import config
from eventing.core.signing import Signed
from eventing.peering.models import DomainDocument
from eventing.peering.rules.domain_documents import KEYS_MAX, BadDocument, read
from eventing.peering.rules.domain_documents import DomainDocument as Document

REFUSED_LOGGED = 256  # stored documents that are logged once each
log = logging.getLogger(__name__)


def domain_known(name: str) -> bool:
    """Whether we hold keys for this domain: it is ours, or its document was pinned or vouched for."""
    return name == config().domain or DomainDocument.objects.filter(name=name).exists()


def domain_keys(name: str) -> Mapping[str, Mapping[str, Any]]:
    """The domain's public JWKs by kid, with `nbf` and maybe `exp` (Unix seconds), ended ones too; empty if not known."""
    if name == config().domain:
        return {key["kid"]: {part: key[part] for part in key if part != "d"} for key in own_keys()}
    document = domain_document(name)
    return document.jwks if document is not None else {}


def domain_document(name: str) -> Document | None:
    """The document that is trusted for the domain; None if there is none."""
    statement = domain_statement(name)
    return read(statement) if statement is not None else None


def domain_statement(name: str) -> Signed | None:
    """The same as the domain signed it, for passing on. Our own may be out of date: services' `own_document` issues it."""
    row = DomainDocument.objects.filter(name=name).first()
    return row.statement if row is not None and _is_valid(row) else None


def domain_statements(names: list[str]) -> list[Signed]:
    """Those of several domains, of those that are known."""
    rows = DomainDocument.objects.filter(name__in=names).order_by("name")
    return [row.statement for row in rows if _is_valid(row)]


def _is_valid(row: DomainDocument) -> bool:
    """Whether a document that was stored is one by the rules of today: an older release may have taken what is none."""
    try:
        read(row.statement)
    except BadDocument as error:
        _refused(row.name, row.serial, str(error))
        return False
    return True


@lru_cache(maxsize=REFUSED_LOGGED)
def _refused(name: str, serial: int, problem: str) -> None:
    log.warning("The stored document %d of %s is used no longer, nor are its keys: %s", serial, name, problem)


def own_fingerprint() -> str | None:
    """The kid of this domain's first key, by which other domains know it; None before it has a key."""
    keys = own_keys()
    return str(keys[0]["kid"]) if keys else None


def own_serial() -> int:
    """The serial of this domain's latest document; 0 before there is one."""
    document = DomainDocument.objects.filter(name=config().domain).only("serial").first()
    return document.serial if document is not None else 0


def own_keys() -> list[dict[str, Any]]:
    """This domain's private JWKs as its document lists them, each with `kid`, `nbf` and maybe `exp`: the first key, then
    the newest, the older ones first. None before the domain has a key."""
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
