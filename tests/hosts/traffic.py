"""Publishers that note what they were promised, and what is checked of it in the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from itertools import count

import httpx

from demo.harness.network import ADMIN, OPEN
from demo.harness.reader import Reader
from demo.harness.servers import wait_for
from tests.hosts.domains import SpreadDomain

ANSWER_S = 15.0
EVERY_S = 0.05
STORED_WITHIN_S = 90.0
READ_WITHIN_S = 90.0

Place = tuple[str, int]


class NotingPublisher(threading.Thread):
    """Publishes one event after the other at one gateway, each with its id until it is acknowledged; at its thread's host, which is that of its maker.

    Attributes:
        acked: place by id of what was acknowledged.
        refused: answers without an acknowledgement, by status or error.
        longest_s: longest time between two acknowledgements.
        failed: answers that no publisher should get.
    """

    def __init__(self, url: str, token: str, rp: str, name: str) -> None:
        super().__init__(name=f"publisher-{name}", daemon=True)
        self.acked: dict[str, Place] = {}
        self.refused: Counter[str] = Counter()
        self.failed: list[str] = []
        self.longest_s = 0.0
        self._url, self._token, self._rp, self._of = url, token, rp, name
        self._over = threading.Event()
        self._acked_at = time.monotonic()
        self.start()

    def run(self) -> None:
        headers = {"Authorization": f"Bearer {self._token}", "content-type": "application/cloudevents+json"}
        with httpx.Client(base_url=self._url, headers=headers, timeout=ANSWER_S, trust_env=False) as client:
            for number in count(1):
                event = {"specversion": "1.0", "id": f"{self._of}-{number}", "source": f"/{self._of}", "type": "test"}
                while not self._acknowledged(client, event):
                    self._over.wait(0.1)
                if self._over.wait(EVERY_S):
                    return

    def _acknowledged(self, client: httpx.Client, event: dict[str, str]) -> bool:
        try:
            answer = client.post(f"/api/v1/rps/{self._rp}/events", json=event)
        except httpx.TransportError as error:
            self.refused[type(error).__name__] += 1
            return False
        if answer.status_code == 201:
            found = answer.json()
            self.acked[event["id"]] = (found["epoch"], found["offset"])
            self.longest_s = max(self.longest_s, time.monotonic() - self._acked_at)
            self._acked_at = time.monotonic()
            return True
        self.refused[str(answer.status_code)] += 1
        if answer.status_code not in (429, 503):
            self.failed.append(f"{answer.status_code} {answer.text}")
        return False

    def goes_on(self, events: int = 5, within_s: float = STORED_WITHIN_S) -> None:
        """Wait until so many more events are acknowledged."""
        before = len(self.acked)
        wait_for(lambda: len(self.acked) >= before + events, within_s, about=f"{self.name} goes on")

    def stop(self) -> None:
        """Stop when the last event is acknowledged."""
        self._over.set()
        self.join(STORED_WITHIN_S)
        assert not self.is_alive(), f"{self.name} has no acknowledgement: {self.refused}"


class Traffic:
    """A rendezvous point of a SpreadDomain with a publisher and a reader at each gateway. Use it as a context manager, at the desk."""

    def __init__(self, domain: SpreadDomain) -> None:
        self._domain = domain
        first, *_ = domain.gateways.values()
        self._token = first.token(admin=True, subject=ADMIN)
        answer = httpx.post(
            f"{first.url}/api/v1/rps",
            json={"policy": OPEN, "lease_s": 3600},
            headers={"Authorization": f"Bearer {self._token}"},
            timeout=60,
            trust_env=False,
        )
        assert answer.status_code == 201, answer.text
        self.rp = str(answer.json()["id"])
        self.readers = {name: self._reader(name) for name in domain.gateways}
        self.publishers = {
            name: NotingPublisher(one.url, self._token, self.rp, name) for name, one in domain.gateways.items()
        }

    def _reader(self, name: str) -> Reader:
        return Reader(self._domain.background, [self._domain.gateways[name].url], self._token, self.rp, "earliest")

    def __enter__(self) -> Traffic:
        for publisher in self.publishers.values():
            publisher.goes_on()
        return self

    def __exit__(self, *_: object) -> None:
        for publisher in self.publishers.values():
            publisher._over.set()
        for reader in self.readers.values():
            reader.stop()

    def check(self) -> None:
        """Stop publishing, and print how it went. Then everything that was acknowledged is held at its place and once, and was given to every reader in order; nobody
        was told that something is missing or was withdrawn.
        """
        for publisher in self.publishers.values():
            publisher.stop()
            print(
                f"{publisher.name}: {len(publisher.acked)} acknowledged, longest pause {publisher.longest_s:.1f} s, {dict(publisher.refused)}"
            )
            assert publisher.failed == []
        acked = {event: place for one in self.publishers.values() for event, place in one.acked.items()}
        places = Counter(acked.values())
        assert [place for place, events in places.items() if events > 1] == [], "one offset was given to two events"
        late = self.readers["afterwards"] = self._reader("g2")
        for name, reader in self.readers.items():
            reader.has(acked, READ_WITHIN_S)
            assert reader.gaps == [], f"the reader at {name} was told of a gap"
        held = {received.id: received.offset for received in late.received}
        assert held == {event: offset for event, (_, offset) in acked.items()}, "an event is not at its place"
        assert sorted(held.values()) == list(range(1, len(held) + 1))
