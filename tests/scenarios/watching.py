"""What administrators are told: the events of `domain.admin` at several domains, from a moment on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from demo.harness.network import Network
from demo.harness.servers import wait_for

PREFIX = "io.herald."


class AdminWatch:
    """The administrative events of domains since this was made, or since `again`."""

    def __init__(self, network: Network, *names: str) -> None:
        self._network = network
        self._names = names or tuple(network.names)
        self.again()

    def again(self) -> None:
        """Begin anew: forget what was told so far."""
        self.began = time.monotonic()
        self._cursors = {name: str(self._ask(name, "/api/v1/admin/snapshot")["cursor"]) for name in self._names}
        self._seen: dict[str, list[tuple[str, dict[str, Any]]]] = {name: [] for name in self._names}

    def told(self, at: str, event: str, /, **data: Any) -> list[dict[str, Any]]:
        """The data of the events of a kind whose data has these members."""
        while events := self._page(at):
            self._seen[at] += [(str(one["type"]).removeprefix(PREFIX), one["data"]) for one in events]
        return [found for of, found in self._seen[at] if of == event and _has(found, data)]

    def caught(self, at: str, event: str, /, within_s: float = 60.0, **data: Any) -> dict[str, Any]:
        """Wait for such an event, and print after how long it came; its data."""
        found = wait_for(
            lambda: self.told(at, event, **data),
            within_s,
            every_s=0.1,
            about=f"{at} tells its administrators of {event} {data}",
        )
        print(f"{at}: {event} {data} after {time.monotonic() - self.began:.1f} s: {found[0].get('detail') or found[0]}")
        return found[0]

    def _page(self, at: str) -> list[dict[str, Any]]:
        page = self._ask(at, f"/api/v1/rps/domain.admin/events?limit=500&after={self._cursors[at]}")
        self._cursors[at] = str(page["cursor"])
        return list(page["events"])

    def _ask(self, at: str, path: str) -> Any:
        return self._network[at].ask("GET", path)


def _has(found: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    return all(found.get(name) == value for name, value in data.items())
