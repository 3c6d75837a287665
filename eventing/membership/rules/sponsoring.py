"""Quotas and chains of sponsorship. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from eventing.membership.rules.records import (
    fingerprint_of,
    grant_of,
    identity_of,
    malformed,
    self_signed,
    sponsorship_verified,
)
from eventing.overlay.directory_records import DAY_S, QUOTA_PER_DAY, DomainRecord

FOUNDERS_QUOTA_PER_DAY = (
    64  # bound: domains that a founder sponsors per day; the next ones are refused: `quota-exceeded`
)


class BadChain(ValueError):
    """A chain of records that does not lead from a sponsor to a founder. The text is a phrase without a full stop."""


def day_of(now_s: float) -> int:
    """Return the day since 1970 of a moment in seconds since 1970."""
    return int(now_s // DAY_S)


def quota_of(founder: bool) -> int:
    """Return how many domains a domain may sponsor per day."""
    return FOUNDERS_QUOTA_PER_DAY if founder else QUOTA_PER_DAY


def chain_founder(chain: Sequence[DomainRecord], sponsor: str, fingerprint: str) -> DomainRecord:
    """Return the founder's record, at which the chain of the sponsor's records ends. Expired records count: only keys matter here.

    Args:
        chain: the sponsor's record, that of its sponsor, and so on.
        sponsor, fingerprint: the peer that presents the chain, as an administrator here approved it.

    Raises BadChain.
    """
    if not chain or chain[0].domain != sponsor or fingerprint_of(chain[0]) != fingerprint:
        raise BadChain("it does not begin with the record of the sponsor that was approved here")
    for record, above in zip(chain, [*chain[1:], None], strict=True):
        problem = malformed(record)
        if problem:
            raise BadChain(f"the record of {record.domain} has {problem}")
        if not self_signed(record):
            raise BadChain(f"the record of {record.domain} has a wrong signature")
        grant = grant_of(record)
        if grant is None:
            if above is not None:
                raise BadChain("it goes on behind a founder")
            return record
        given = grant.sponsorship
        if above is None or given.sponsor != above.domain or given.newcomer != record.domain:
            raise BadChain("it does not end with a founder")
        if not sponsorship_verified(grant, identity_of(record), identity_of(above)):
            raise BadChain(f"{above.domain} did not sponsor {record.domain}")
    raise BadChain("it does not end with a founder")
