"""Records of the directory and the sponsorships by which they are admitted: form, times, quotas."""

from __future__ import annotations

import msgspec

from eventing.overlay.machine import Id

REFRESH_S = 1800.0
"""Between two records of a domain: 1.8 kB/s with 10,000 domains; the period is what costs, not the number."""
EXPIRY_S = 4 * REFRESH_S
"""A record of 30 minutes outlives a partition of an hour, and half an hour to be renewed after it."""
AHEAD_S = 300.0  # bound: seconds that a record may be ahead of the own clock; the record is refused
# bound: sponsorships per day of a domain and of all that it brought in; further newcomers are refused
QUOTA_PER_DAY = 8
ANCESTORS_MAX = 64  # bound: sponsors of sponsors up to a founder; deeper newcomers are refused
DAY_S = 86_400


class Sponsorship(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A domain's statement that another may be admitted.

    Attributes:
        sponsor: the domain that states it.
        newcomer: the domain that it admits.
        day: days since 1970 by the sponsor's clock; not before the sponsor was admitted itself.
        number: 0 to QUOTA_PER_DAY - 1, each once a day.
    """

    sponsor: Id
    newcomer: Id
    day: int
    number: int


class DomainRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The statement of a domain about itself.

    Attributes:
        domain: its id.
        version: greater than that of every earlier record: seconds of its clock since 1970.
        issued_s, expires_s: seconds since 1970.
        key: fingerprint of its keys.
        url: where it is reached; empty if it only calls out.
        zone: where it is, by its own word; for choosing near and unlike peers.
        operator: who runs it, by its own word; domains of one operator share a risk.
        capacity: class from 0 (a small device) to 3; claims are clamped to it.
        sponsorship: by which it was admitted; None for a founder.
        signature: over all that, by `key`, and over the sponsorship by the sponsor.
    """

    domain: Id
    version: int
    issued_s: float
    expires_s: float
    key: str = ""
    url: str = ""
    zone: str = ""
    operator: str = ""
    capacity: int = 1
    sponsorship: Sponsorship | None = None
    signature: bytes = b""
