"""Signing the descriptors of this domain's RPs: at creation, at each change, and a last one when an RP ends."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.peering.models import DomainDocument
from eventing.peering.selectors.domain_documents import own_keys
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import Descriptor, descriptor_make, packed


def genesis_key() -> str | None:
    """What the genesis of a new RP binds its home by: this domain's fingerprint; None before the domain has a key."""
    keys = own_keys()
    return str(keys[0]["kid"]) if keys else None


def descriptor_sign(row: RendezvousPoint, now: datetime, *, ended: bool = False) -> bytes | None:
    """The signed descriptor of an RP of ours as it is now; `ended` makes it its last one, of a version of its own.

    None if there cannot be one: the RP was made before genesis named a key, or the domain has no key.
    """
    key = signing_key(now)
    if row.home or key is None or "key" not in row.genesis:
        return None
    statement = descriptor_make(
        Descriptor(
            rp=row.id,
            version=row.version + 1 if ended else row.version,
            home=config().domain,
            genesis=row.genesis,
            serial=_serial(),
            issued_at_ms=int(now.timestamp() * 1000),
            ended=ended,
            name=row.name,
            title=row.title,
            history=asdict(row.bounds),
            policy=row.policy,
            ack=row.ack,
        ),
        key,
    )
    return packed(statement)


def _serial() -> int:
    document = DomainDocument.objects.filter(name=config().domain).only("serial").first()
    return document.serial if document is not None else 0
