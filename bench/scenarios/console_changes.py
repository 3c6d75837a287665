"""Changes of a domain, of many kinds, and when each appeared on the pages that show it.

A change is made over REST (or a WebSocket), and its delay runs from the answer: from then on a reader may expect it.
What a page showed before the answer counts as no delay. Alarms are raised by the domain itself: their delay runs from
the time in the alarm.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from websockets.sync.client import ClientConnection, connect

from bench.processes import CannotStart
from bench.scenarios.console_browser import ExpectedElement, Tab
from bench.scenarios.console_domain import ConsoleDomain

OVERVIEW, LIST, ONE, SUBSCRIPTIONS, LEASES, ALARMS, FEDERATION = (
    *("overview", "RP list", "one RP", "subscriptions", "leases", "alarms", "federation"),
)
RAISED_WITHIN_S = 20.0
BURST = 400  # events that make an RP the busiest
SOON_S, LATER_S = 900, 1800  # leases that expire before all others: they are listed first


@dataclass
class ChangeKind:
    """One kind of change: the measured delays, in seconds, with the page; and the missing changes."""

    name: str
    delays: list[tuple[float, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    changes: int = 0


class Changes:
    """Makes changes of `domain` and waits for them on `tabs`, which are open and watched.

    Args:
        rp: an RP without other traffic, whose page is open.
    """

    def __init__(self, domain: ConsoleDomain, tabs: Mapping[str, Tab], rp: str, peers: Sequence[str]) -> None:
        self._domain, self._tabs, self._rp, self._peers = domain, tabs, rp, peers
        self._numbers = itertools.count(1)
        self._rps = tabs[OVERVIEW].number('[data-tile="rps"] .tile-value')
        self._held = tabs[ONE].number("#held-events")
        self.kinds: dict[str, ChangeKind] = {}

    def run(self, rounds: int) -> None:
        """Run rounds of all kinds; one has about two dozen changes."""
        for number in range(rounds):
            self._rp_lives()
            self._rp_lives()
            self._rp_is_paused()
            self._subscription_lives()
            self._subscription_lives()
            self._session_comes_and_goes()
            self._peer_is_suspended(self._peers[number % len(self._peers)])
            self._alarm_is_raised()
            self._rate_changes(self._domain.rps[number])

    # -- the kinds ----------------------------------------------------------------------------------------------------

    def _rp_lives(self) -> None:
        number = next(self._numbers)
        made = self._change(
            "RP created",
            lambda: self._domain.ask("POST", "/api/v1/rps", {"title": f"Fresh {number}", "lease_s": SOON_S}),
            lambda rp: [
                ExpectedElement(LIST, f'tr[data-rp="{rp["id"]}"]', f"Fresh {number}"),
                ExpectedElement(LEASES, f'#listing a[href="/rps/{rp["id"]}"]'),
                self._count(+1),
            ],
        )
        self._change(
            "RP changed",
            lambda: self._domain.ask("PATCH", f"/api/v1/rps/{made['id']}", {"title": f"Renamed {number}"}),
            lambda rp: [ExpectedElement(LIST, f'tr[data-rp="{rp["id"]}"]', f"Renamed {number}")],
        )
        self._change(
            "RP changed",
            lambda: self._domain.ask("PATCH", f"/api/v1/rps/{self._rp}", {"title": f"Watched {number}"}),
            lambda rp: [
                ExpectedElement(LIST, f'tr[data-rp="{rp["id"]}"]', f"Watched {number}"),
                ExpectedElement(ONE, "#label", f"Watched {number}"),
            ],
        )
        self._change(
            "RP deleted",
            lambda: self._delete(f"/api/v1/rps/{made['id']}"),
            lambda _: [
                ExpectedElement(LIST, f'tr[data-rp="{made["id"]}"]:not(.gone)', absent=True),
                ExpectedElement(LEASES, f'#listing a[href="/rps/{made["id"]}"]', absent=True),
                self._count(-1),
            ],
        )

    def _rp_is_paused(self) -> None:
        badge = f'tr[data-rp="{self._rp}"] .badge.warn'
        for kind, act, absent in (("RP paused", "pause", False), ("RP resumed", "resume", True)):
            self._change(
                kind,
                lambda act=act: self._domain.ask("POST", f"/api/v1/rps/{self._rp}/{act}", {}),  # type: ignore[misc]
                lambda _, absent=absent: [  # type: ignore[misc]
                    ExpectedElement(LIST, badge, absent=absent),
                    ExpectedElement(ONE, "#is-paused:not([hidden])", absent=absent),
                ],
            )

    def _subscription_lives(self) -> None:
        of_it = '[title="{id}"]'.format
        ends = 'tr:has([title="{id}"]) time[datetime="{end}"]'.format
        tile = '[data-tile="subscriptions"] .tile-value'
        made = self._change(
            "subscription made",
            lambda: self._domain.ask("POST", f"/api/v1/rps/{self._rp}/subscriptions", {"lease_s": SOON_S}),
            lambda one: [
                ExpectedElement(SUBSCRIPTIONS, of_it(**one)),
                ExpectedElement(LEASES, of_it(**one)),
                ExpectedElement(ONE, tile, "1", exact=True),
                ExpectedElement(OVERVIEW, tile, "1", exact=True),
            ],
        )
        path = f"/api/v1/subscriptions/{made['id']}"
        self._change(
            "subscription renewed",
            lambda: self._domain.ask("POST", f"{path}/renew", {"lease_s": LATER_S}),
            lambda one: [
                ExpectedElement(page, ends(id=made["id"], end=one["lease"]["expires_at"]))
                for page in (SUBSCRIPTIONS, LEASES)
            ],
        )
        self._change(
            "subscription deleted",
            lambda: self._delete(path),
            lambda _: [
                ExpectedElement(SUBSCRIPTIONS, of_it(**made), absent=True),
                ExpectedElement(LEASES, of_it(**made), absent=True),
                ExpectedElement(ONE, tile, "0", exact=True),
                ExpectedElement(OVERVIEW, tile, "0", exact=True),
            ],
        )

    def _session_comes_and_goes(self) -> None:
        sessions, readings = '[data-tile="sessions"] .tile-value', '[data-tile="readings"] .tile-value'
        there = self._tabs[OVERVIEW].number(sessions)
        reading: ClientConnection = self._change(
            "session joined",
            self._join,
            lambda _: [
                ExpectedElement(OVERVIEW, sessions, f"{there + 1:,}", exact=True),
                ExpectedElement(ONE, readings, "1", exact=True),
            ],
        )
        self._change(
            "session left",
            reading.close,
            lambda _: [
                ExpectedElement(OVERVIEW, sessions, f"{there:,}", exact=True),
                ExpectedElement(ONE, readings, "0", exact=True),
            ],
        )

    def _join(self) -> ClientConnection:
        headers = {"Authorization": f"Bearer {self._domain.token}"}
        address = f"ws://127.0.0.1:{self._domain.port}/ws"
        session = connect(address, additional_headers=headers, subprotocols=["herald.v1"], proxy=None)  # type: ignore[list-item]
        session.send(json.dumps({"op": "subscribe", "id": 1, "rp": self._rp, "from": "now"}))
        session.recv(10)
        return session

    def _peer_is_suspended(self, peer: str) -> None:
        row = f'#peers tr:has(a[href="/federation/{peer}"])'
        for kind, act, absent in (("peer suspended", "suspend", False), ("peer resumed", "resume", True)):
            self._change(
                kind,
                lambda act=act: self._domain.ask("POST", f"/api/v1/peers/{peer}/{act}", {}),  # type: ignore[misc]
                lambda _, absent=absent: [ExpectedElement(FEDERATION, row, "Suspended", absent=absent)],  # type: ignore[misc]
            )

    def _alarm_is_raised(self) -> None:
        gap = {"lease_gap": {"s": 30 * 86_400}, "severity": "warning", "for_s": 0}
        alarms: list[Any] = []

        def raised_at() -> float:
            deadline = time.monotonic() + RAISED_WITHIN_S
            while not alarms:
                if time.monotonic() > deadline:
                    raise CannotStart(f"no alarm was raised within {RAISED_WITHIN_S:g} s")
                alarms.extend(self._domain.ask("GET", f"/api/v1/alarms?rp={self._rp}")["items"])
                time.sleep(0.1)
            return datetime.fromisoformat(alarms[0]["since"]).timestamp()

        places = [(ALARMS, f'#listing a[href*="{self._rp}"]'), (OVERVIEW, f'#alarms a[href*="{self._rp}"]')]
        self._change(
            "alarm raised",
            lambda: self._domain.ask("PATCH", f"/api/v1/rps/{self._rp}", {"watch": [gap]}),
            lambda _: [*(ExpectedElement(*place) for place in places), ExpectedElement(ONE, "#alarms .badge.warn")],
            since=raised_at,
        )
        self._change(
            "alarm acknowledged",
            lambda: self._domain.ask("POST", f"/api/v1/alarms/{alarms[0]['id']}/acknowledge", {"note": "seen"}),
            lambda _: [ExpectedElement(ALARMS, "#listing .tag", "acknowledged")],
        )
        self._change(
            "alarm cleared",
            lambda: self._domain.ask("PATCH", f"/api/v1/rps/{self._rp}", {"watch": []}),
            lambda _: [
                *(ExpectedElement(*place, absent=True) for place in places),
                ExpectedElement(ONE, "#alarms .badge.warn", absent=True),
            ],
        )

    def _rate_changes(self, rp: str) -> None:
        self._change(
            "rate changed",
            lambda: self._publish(rp, BURST),
            lambda _: [ExpectedElement(OVERVIEW, f'#hot a[href="/rps/{rp}"]')],
        )
        self._held += 7
        self._change(
            "rate changed",
            lambda: self._publish(self._rp, 7),
            lambda _: [ExpectedElement(ONE, "#held-events", f"{self._held:,}", exact=True)],
        )

    # -- one change ---------------------------------------------------------------------------------------------------

    def _change(
        self,
        name: str,
        act: Callable[[], Any],
        wanted: Callable[[Any], Sequence[ExpectedElement]],
        since: Callable[[], float] | None = None,
    ) -> Any:
        kind = self.kinds.setdefault(name, ChangeKind(name))
        answer = act()
        at = time.time()
        asked = [(one, self._tabs[one.page].want(one)) for one in wanted(answer)]
        if since is not None:
            at = since()
        seen = [(one.page, self._tabs[one.page].seen(key)) for one, key in asked]
        kind.changes += 1
        for page, moment in seen:
            if moment is None:
                kind.missing.append(page)
            else:
                kind.delays.append((max(0.0, moment - at), page))
        return answer

    def _count(self, change: int) -> ExpectedElement:
        self._rps += change
        return ExpectedElement(OVERVIEW, '[data-tile="rps"] .tile-value', f"{self._rps:,}", exact=True)

    def _delete(self, path: str) -> None:
        with contextlib.suppress(json.JSONDecodeError):  # 204: there is nothing to read
            self._domain.ask("DELETE", path)

    def _publish(self, rp: str, events: int) -> None:
        made = [
            {
                "specversion": "1.0",
                "id": f"{next(self._numbers)}",
                "source": "/bench/console",
                "type": "bench",
                "data": 1,
            }
            for _ in range(events)
        ]
        self._domain.publish(rp, made)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the least value that at least `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))]


def slowest(kind: ChangeKind) -> str:
    """Return the page on which it took longest."""
    return max(kind.delays)[1] if kind.delays else ""


def all_delays(kinds: Mapping[str, ChangeKind]) -> Iterator[float]:
    """Yield the delays of all kinds, seconds."""
    for kind in kinds.values():
        yield from (delay for delay, _ in kind.delays)
