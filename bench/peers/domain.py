"""A whole Herald domain, all processes of `make run`, that peers with others, for the federation scenario.

Several of them share the machine and both its cores. They are controlled over their ports, as administrators do.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.peers.herald import LEASE_S, Herald

PEERED_WITHIN_S = 30.0
STOP_WITHIN_S = 20.0
_JOINERS = 2  # joins at a time: a peer takes four requests of one domain at once, and forwarding is one
_OPEN = [{"issuer": "anyone", "allow": ["describe", "publish", "subscribe", "history", "replicate"]}]


class BenchDomain(Herald):
    """One domain, NAME.test. Not in SERVERS: the scenario starts as many as it needs."""

    label = "Herald domain"
    all_cores = True

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder / name)
        self.folder.mkdir()
        self.short = name
        self.domain = self.called = f"{name}.test"
        self.source = f"/bench/{name}"  # the same id at another domain is a different event

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {"HERALD_DOMAIN": self.domain, "HERALD_ALLOW_PRIVATE_PEERS": "1"}

    def start(self) -> None:
        self.spawn()
        self.wait_up()

    def ask(self, method: str, path: str, members: Any = None) -> Any:
        """Send a request as administrator; return its JSON. Raises CannotStart for a refusal."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            return self._ask(connection, method, path, None if members is None else json.dumps(members).encode())
        finally:
            connection.close()

    # -- peers and replicas -----------------------------------------------------------------------------------------

    def add_peer(self, other: BenchDomain) -> None:
        """Look up the other domain, compare the fingerprint, add it: the acts of its administrator."""
        seen = self.ask("POST", "/api/v1/peers/look", {"url": other.url})
        stated = {"url": other.url, "fingerprint": seen["fingerprint"], "push": True, "host": True, "gossip": True}
        self.ask("POST", "/api/v1/peers", stated)

    def await_peer(self, other: BenchDomain) -> None:
        """Wait until the peering is active here."""
        path = f"/api/v1/peers/{other.domain}"
        self._until(lambda: self.ask("GET", path)["state"] == "active", PEERED_WITHIN_S, f"a peer of {other.domain}")

    def prepare(self, streams: int, history_events: int = 1000) -> None:
        """Prepare RPs as a lone server does; any domain may replicate them."""
        self.describe["policy"] = _OPEN
        super().prepare(streams, history_events)

    def join(self, home: BenchDomain) -> None:
        """Take part in all RPs that `home` has prepared."""
        with ThreadPoolExecutor(_JOINERS) as pool:
            asked = [{"rp": rp, "via": home.domain, "lease_s": LEASE_S} for rp in home.rps]
            list(pool.map(lambda one: self.ask("POST", "/api/v1/replicas", one), asked))
        self.rps = list(home.rps)

    # -- held events and counts ------------------------------------------------------------------------------

    def held(self, streams: Sequence[int]) -> int:
        """Return how many events its logs of these RPs have received, its own and others'."""
        with ThreadPoolExecutor(_JOINERS) as pool:
            return sum(pool.map(lambda stream: self.stored(stream) or 0, streams))

    def traffic(self, peer: BenchDomain) -> dict[str, int]:
        """Return the counts of traffic from the peer, by the names of the answer."""
        return dict(self.ask("GET", f"/api/v1/peers/{peer.domain}/delivery")["traffic"])

    def pid_of(self, process: str) -> int:
        """Return the pid of the process of this name (gateway, forwarder, redis ...)."""
        table = json.loads((self.data / "processes.json").read_text())
        return int(table["processes"][process]["pid"])
