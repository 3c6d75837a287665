"""Records for which their sender is answerable: an honest domain would have refused them itself. Pure.

A domain is answerable for what no clock of its own, no founder that it trusts and no order of arrival can excuse. Quotas and other
sponsorships depend on what arrived first, and founders on whom an administrator joined: a record refused for these is nobody's fault.
"""

from __future__ import annotations

from eventing.membership.rules.records import malformed, self_signed
from eventing.overlay.directory_records import AHEAD_S, DAY_S, EXPIRY_S, QUOTA_PER_DAY, DomainRecord

CLOCKS_S = AHEAD_S
"""Most that the sender's clock may differ from the own one, in either direction."""
KEPT_S = EXPIRY_S / 5
"""An honest domain discards records within this after their expiry: it looks every tenth of EXPIRY_S."""


def answerable(record: DomainRecord, now_s: float) -> bool:
    """Return True if an honest domain would not have sent the record at this time (seconds since 1970)."""
    latest = now_s + AHEAD_S + CLOCKS_S
    if not (record.issued_s <= latest and record.version <= latest):
        return True
    if not now_s - KEPT_S - CLOCKS_S < record.expires_s <= record.issued_s + EXPIRY_S or record.version <= 0:
        return True
    given = record.sponsorship
    if given is not None:
        counted = 0 <= given.number < QUOTA_PER_DAY and 0 <= given.day <= latest // DAY_S
        if given.newcomer != record.domain or not counted:
            return True
    return bool(malformed(record)) or not self_signed(record)
