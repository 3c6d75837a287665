"""Whoever owns a rendezvous point and the subscriptions there whose events a domain sends to endpoints."""

from __future__ import annotations

import base64
import json
import os
from typing import Any

import httpx

from demo.harness.servers import Domain, wait_for

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


class Owner:
    """Whoever owns an RP and subscriptions there."""

    def __init__(self, domain: Domain) -> None:
        self.token = domain.token(admin=True, subject=f"owner-{os.urandom(4).hex()}")
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx.Client(base_url=domain.url, headers=headers, timeout=60, trust_env=False)
        self.rp = self._ok(self.http.post("/api/v1/rps", json={"history": {"max_events": 10000}}))["id"]

    def hook(self, url: str, **deliver: Any) -> str:
        """Create a webhook; return its subscription."""
        answer = self.asks_hook(url, **deliver)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def asks_hook(self, url: str, **deliver: Any) -> httpx.Response:
        """Ask for a webhook."""
        stated = {"url": url, "mode": "webhook", **deliver}
        return self.http.post(f"/api/v1/rps/{self.rp}/subscriptions", json={"deliver": stated})

    def hooks(self) -> list[str]:
        """Return the subscriptions at the RP."""
        found = self._ok(self.http.get(f"/api/v1/rps/{self.rp}/subscriptions"))
        return [str(one["id"]) for one in found["items"]]

    def publish(self, *data: Any) -> None:
        """Publish events with these data, in one batch."""
        events = [
            {"specversion": "1.0", "id": os.urandom(8).hex(), "source": "/t", "type": "t", "data": one} for one in data
        ]
        kind = {"Content-Type": "application/cloudevents-batch+json"}
        self._ok(self.http.post(f"/api/v1/rps/{self.rp}/events", content=json.dumps(events), headers=kind))

    def endpoint(self, subscription: str) -> dict[str, Any]:
        """Return the endpoint."""
        return self._ok(self.http.get(f"/api/v1/subscriptions/{subscription}/endpoint"))

    def does(self, subscription: str, what: str, **body: Any) -> dict[str, Any]:
        """Post to a resource of the subscription."""
        return self._ok(self.http.post(f"/api/v1/subscriptions/{subscription}/{what}", json=body))

    def attempts(self, subscription: str) -> list[dict[str, Any]]:
        """Return the last attempts."""
        return list(self._ok(self.http.get(f"/api/v1/subscriptions/{subscription}/attempts"))["items"])

    def dead_letters(self, subscription: str) -> list[dict[str, Any]]:
        """Return the dead letters."""
        return list(self._ok(self.http.get(f"/api/v1/subscriptions/{subscription}/dead-letters"))["items"])

    def wait_state(self, subscription: str, state: str) -> None:
        """Wait until the endpoint is in a state."""
        wait_for(lambda: self.endpoint(subscription)["state"] == state, about=state, every_s=0.1)

    @staticmethod
    def _ok(answer: httpx.Response) -> dict[str, Any]:
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found
