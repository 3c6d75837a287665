"""Signing the descriptors of this domain's RPs: at creation, at each change, and a last one when an RP ends."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.rps.models import RendezvousPoint
from eventing.rps.ports import domain_document_serial
from eventing.rps.rules.statements import DescriptorStatement, descriptor_make, packed


def descriptor_sign(row: RendezvousPoint, now: datetime, *, ended: bool = False) -> bytes | None:
    """Sign the present descriptor of an own RP; `ended` makes it the last one, with a version of its own.

    Returns None if the genesis, being older than replicas, names no key, or the domain has no key.
    """
    key = signing_key(now)
    if row.home or key is None or "key" not in row.genesis:
        return None
    statement = descriptor_make(
        DescriptorStatement(
            rp=row.id,
            version=row.version + 1 if ended else row.version,
            home=config().domain,
            genesis=row.genesis,
            serial=domain_document_serial(),
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
