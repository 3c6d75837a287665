"""Domains as tests of membership see them: identity keys, and records signed with them."""

from __future__ import annotations

from typing import Any

from eventing.membership.rules.records import SponsorshipGrant, record_sign, sponsorship_sign
from eventing.overlay.directory_records import EXPIRY_S, DomainRecord, Sponsorship
from tests.peering.played_domain import new_key

NOW_S = 1_800_000_000.0


class Signer:
    """A domain with an identity key, founder or sponsored. `at`: when it issues its records, Unix seconds."""

    def __init__(
        self, name: str, sponsor: Signer | None = None, *, number: int = 0, day: int = 20_833, at: float = NOW_S
    ) -> None:
        self.name, self.at = name, at
        self.identity: dict[str, Any] = new_key()
        self.grant: SponsorshipGrant | None = None
        if sponsor is not None:
            given = Sponsorship(sponsor.name, name, day, number)
            self.grant = sponsorship_sign(given, self.x, sponsor.identity)

    @property
    def x(self) -> str:
        return str(self.identity["x"])

    @property
    def fingerprint(self) -> str:
        return str(self.identity["kid"])

    def record(self, version: int | None = None, *, signing: tuple[str, ...] = (), **members: Any) -> DomainRecord:
        stated = {"url": f"https://{self.name}", "zone": "eu-1", **members}
        given = None if self.grant is None else self.grant.sponsorship
        number = int(self.at) if version is None else version
        made = DomainRecord(self.name, number, self.at, self.at + EXPIRY_S, sponsorship=given, **stated)
        return record_sign(made, self.identity, signing, b"" if self.grant is None else self.grant.signature)
