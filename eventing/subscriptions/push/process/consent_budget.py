"""The bound of requests to addresses that have not consented: nobody can have this domain send more to one that did not ask."""

from __future__ import annotations

import time
from collections import OrderedDict

CONSENTS_PER_MINUTE_MAX = 30  # bound: requests for consent a minute, to one host and for one owner; further ones wait
COUNTED_MAX = 10_000  # bound: hosts and owners counted; the one counted longest ago is forgotten


class ConsentBudget:
    """The requests for consent of one process in the last minute."""

    def __init__(self) -> None:
        self._counted: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def takes(self, host: str, owner: str) -> bool:
        """Count a request, and return whether it may be made."""
        return self._counts(f"host {host}") and self._counts(f"owner {owner}")

    def _counts(self, whom: str) -> bool:
        now = time.monotonic()
        since, count = self._counted.pop(whom, (now, 0))
        if now - since >= 60:
            since, count = now, 0
        self._counted[whom] = (since, count + 1)
        while len(self._counted) > COUNTED_MAX:
            self._counted.popitem(last=False)
        return count < CONSENTS_PER_MINUTE_MAX
