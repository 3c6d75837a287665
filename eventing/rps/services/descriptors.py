"""Signing the descriptors of this domain's RPs: at creation, at each change, and a last one when an RP ends; and the
statements of their properties beyond the descriptor."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.rps.models import RendezvousPoint
from eventing.rps.ports import domain_document_serial
from eventing.rps.rules.statements import (
    DescriptorStatement,
    PropertyStatement,
    descriptor_make,
    packed,
    properties_make,
    properties_read,
    unpacked,
)


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
            term=row.term,
        ),
        key,
    )
    return packed(statement)


def properties_sign(row: RendezvousPoint, now: datetime) -> bytes | None:
    """Sign the present properties of an own RP, later than the statement before; None as in `descriptor_sign`."""
    key = signing_key(now)
    if row.home or key is None or "key" not in row.genesis:
        return None
    held = row.property_statement
    after_ms = -1 if held is None else properties_read(unpacked(held)).issued_at_ms
    at_ms = max(int(now.timestamp() * 1000), after_ms + 1)
    return packed(properties_make(PropertyStatement(row.id, config().domain, at_ms, row.reliability), key))
