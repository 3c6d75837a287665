"""Keeping of a lease: renewed at half of the granted time, so that one failed renewal does not lose it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from herald.answers import reading
from herald.backoff import Backoff
from herald.errors import ConnectionLost, Problem

RENEW_AT = 0.5
GRANTED_S_MAX = 1e10  # 300 years: a longer one is no lease
PAUSE_S_MIN = 0.2  # between renewals of the shortest leases
log = logging.getLogger("herald")


@dataclass(frozen=True, slots=True)
class Lease:
    """A granted lease: seconds from the grant, and its end (RFC 3339)."""

    granted_s: float
    expires_at: str

    def __str__(self) -> str:
        """Return text for people: `86400 s, until 2026-11-22T23:05:04.343586Z`."""
        return f"{self.granted_s:.15g} s, until {self.expires_at}"

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Lease:
        """Return the lease in an RP's or a subscription's document."""
        lease = document.get("lease")
        members = lease if isinstance(lease, Mapping) else document
        with reading("A lease"):
            granted_s = float(members.get("granted_s", 0.0))
            if not 0 <= granted_s <= GRANTED_S_MAX:
                raise ValueError(f"{granted_s} s")
            return cls(granted_s, str(members.get("expires_at", "")))


async def keep(renew: Callable[[], Awaitable[Lease]]) -> None:
    """Call `renew` now and then at half of each granted lease; runs until cancelled.

    A renewal without an answer is retried with backoff. Raises Problem for a final refusal: the lease has expired, or
    the renewal is not permitted.
    """
    backoff = Backoff(random.Random())  # noqa: S311 - jitter, not a secret
    while True:
        try:
            lease = await renew()
        except ConnectionLost as error:
            log.info("A lease could not be renewed: %s", error)
            await asyncio.sleep(backoff.next())
        except Problem as problem:
            if not problem.passing:
                raise
            await asyncio.sleep(backoff.next(problem.retry_after_s))
        else:
            backoff.reset()
            await asyncio.sleep(max(PAUSE_S_MIN, lease.granted_s * RENEW_AT))
