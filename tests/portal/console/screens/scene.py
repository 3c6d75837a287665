"""A harbour and its neighbours: real domains with something to see, for the pictures of docs/screens/.

harbour.test is the one whose console is shown. It exchanges events with weather.test, has lost pilots.test, and is asked by
customs.test. All of it is done as people and programs do it, over the public interfaces; nothing is put into a database.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from demo.harness.network import Network, NetworkDomain
from demo.harness.reader import Reader
from demo.harness.servers import wait_for
from tests.subscriptions.push.receiver import Receiver

HERE, WELL, LOST, ASKING = "harbour", "weather", "pilots", "customs"
SETTINGS: dict[str, Any] = {
    "records_flush_s": 1,
    "records_segment_s": 5,
    "spark_master": "local[2]",
    "report_memory_mb": 512,
    "history_quota_bytes": 2 * 1024**3,
    "push": 1,
    "push_private": 1,
    "push_ports": "1-65535",
    "push_retries_s": "5,30,300,1800,7200",
}
OWN = {"issuer": "domain", "allow": ["describe", "subscribe", "history"]}
SENSORS = {"issuer": "domain", "claims": {"role": {"equals": "sensor"}}, "allow": ["publish"]}
NEIGHBOURS = {"issuer": f"peer:{WELL}.test", "allow": ["describe", "subscribe", "history", "replicate"]}
ANYONE = {"issuer": "anyone", "allow": ["describe", "subscribe", "history", "publish", "replicate"]}
RETRY = (httpx.HTTPError, AssertionError)
TRIES, AGAIN_S = 10, 3.0


@dataclass(frozen=True)
class Place:
    """A rendezvous point of the scene, who publishes there, and how often (seconds; 0: nobody)."""

    name: str
    title: str
    every_s: float = 0
    type: str = "org.harbour.note"
    data: Callable[[int], Any] = lambda number: {"number": number}
    policy: list[dict[str, Any]] = field(default_factory=lambda: [SENSORS, OWN, NEIGHBOURS])
    stated: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        return f"/{HERE}.test/{self.name.rsplit('/', 1)[0]}"


def _tide(place: float) -> Callable[[int], Any]:
    return lambda number: {"metres": round(2.4 + 1.1 * math.sin(number / 40 + place), 2), "station": round(place)}


def _ship(number: int) -> Any:
    chance = random.Random(number)
    return {
        "mmsi": 257_000_000 + chance.randrange(400),
        "knots": round(chance.uniform(0, 18), 1),
        "course": chance.randrange(360),
    }


PLACES = (
    Place(
        "tides/north-pier",
        "Water level at the north pier",
        0.5,
        "org.harbour.tide.level",
        _tide(1),
        [SENSORS, OWN, NEIGHBOURS],
        {"reliability": 0.999},
    ),
    Place("tides/south-pier", "Water level at the south pier", 1.0, "org.harbour.tide.level", _tide(2), [SENSORS, OWN]),
    Place(
        "tides/inner-basin", "Water level in the inner basin", 2.0, "org.harbour.tide.level", _tide(3), [SENSORS, OWN]
    ),
    Place(
        "ships/positions",
        "Positions of ships in the fairway",
        0.08,
        "org.harbour.ship.position",
        _ship,
        [ANYONE],
        {"history": {"max_events": 2000}},
    ),
    Place(
        "ships/arrivals",
        "Ships that have come",
        4.0,
        "org.harbour.ship.arrived",
        lambda number: {"ship": f"Fjordline {number % 12 + 1}", "berth": number % 9 + 1},
    ),
    Place(
        "ships/departures",
        "Ships that have left",
        5.0,
        "org.harbour.ship.departed",
        lambda number: {"ship": f"Fjordline {number % 12 + 1}"},
    ),
    Place(
        "cranes/1/state",
        "Crane 1",
        1.5,
        "org.harbour.crane.state",
        lambda number: {"lifted_t": number % 40, "moving": number % 3 > 0},
    ),
    Place("cranes/2/state", "Crane 2", 0, "org.harbour.crane.state"),
    Place(
        "cranes/3/state",
        "Crane 3",
        3.0,
        "org.harbour.crane.state",
        lambda number: {"lifted_t": number % 25, "moving": number % 2 > 0},
    ),
    Place(
        "berths/assignments",
        "Which ship lies where",
        6.0,
        "org.harbour.berth.assigned",
        lambda number: {"berth": number % 9 + 1, "until": "tide"},
    ),
    Place(
        "pilots/requests",
        "Ships that ask for a pilot",
        2.5,
        "org.harbour.pilot.asked",
        lambda number: {"ship": f"Fjordline {number % 12 + 1}"},
        [ANYONE],
    ),
    Place(
        "customs/declarations",
        "Declarations, for the customs alone",
        0,
        policy=[
            {
                "issuer": "domain",
                "claims": {"role": {"in": ["customs", "auditor"]}},
                "allow": ["describe", "publish", "subscribe", "history"],
            }
        ],
    ),
    Place("alerts/storm", "Storm warnings", 0, policy=[ANYONE]),
    Place("works/dredger", "The dredger, until it is sold", 0, stated={"lease_s": 900}),
)
WIND = Place(
    "forecast/wind",
    "Wind over the bay",
    1.2,
    "org.weather.wind",
    lambda number: {"knots": 9 + number % 7, "from": "NW"},
    [ANYONE],
)


def _added(state: str) -> bool:
    return state in ("proposed", "active")


def _patiently(act: Callable[[], Any]) -> Any:
    """Do it, and again where a domain did not answer in time: on a busy machine each takes long to start."""
    for _ in range(TRIES - 1):
        with suppress(*RETRY):
            return act()
        time.sleep(AGAIN_S)
    return act()


class Scene:
    """The domains, and everybody who does something there. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.network = Network(folder, [HERE, WELL, LOST, ASKING], **SETTINGS)
        self.rps: dict[str, str] = {}
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._clients: list[httpx.Client] = []
        self._receiver = Receiver()
        self.hooks: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._receiver.__enter__()
        self._start(HERE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(20)
        for open_socket in self._sockets:
            open_socket.close()
        for client in self._clients:
            client.close()
        self.network.close()
        self._receiver.__exit__(kind, error, trace)

    @property
    def here(self) -> NetworkDomain:
        return self.network[HERE]

    # -- what makes it lively -----------------------------------------------------------------------------------------

    def fill(self) -> None:
        """From an empty domain to a busy one."""
        for place in PLACES:
            stated = {"name": place.name, "title": place.title, "policy": place.policy, "lease_s": 30 * 86_400}
            self.rps[place.name] = str(self.here.ask("POST", "/api/v1/rps", {**stated, **place.stated})["id"])
        self._people()
        self._neighbours()
        self._subscriptions()
        self._readers()
        self._endpoints()
        self._troubles()
        for place in PLACES:
            if place.every_s:
                self._publish_on(place)

    def reports(self) -> list[str]:
        """Have the reports made that there are pictures of, one after another; a sentence for each that was not."""
        return [told for job in ("load", "access") if (told := self._report(job))]

    def _report(self, job: str, within_s: float = 400) -> str:
        run, shown = "", dict[str, Any]()

        def ended() -> bool:
            with suppress(httpx.HTTPError):  # a busy machine: it is asked again
                shown.update(self.here.ask("GET", f"/api/v1/reports/{run}"))
            return shown.get("state") in {"done", "failed", "cancelled"}

        try:
            run = str(self.here.ask("POST", "/api/v1/reports", {"job": job})["id"])
            wait_for(ended, within_s, every_s=2, about=f"the {job} report is made")
        except AssertionError as error:
            return str(error)
        return "" if shown["state"] == "done" else f"the {job} report: {shown['state']}, {shown.get('reason')}"

    def _people(self) -> None:
        for name, role in (("ingrid", "operator"), ("olav", "viewer"), ("harbour-master", "administrator")):
            told = self.here.manage("users", "add", name, "--role", role)
            assert told.returncode == 0, told.stderr

    def _readers(self) -> None:
        for name, who, count in (
            ("tides/north-pier", "tide-display", 3),
            ("ships/positions", "radar-screen", 5),
            ("ships/arrivals", "quay-board", 2),
            ("cranes/1/state", "crane-desk", 1),
        ):
            for number in range(1, count + 1):
                self._reader(name, f"{who}-{number}")
        slow = socket.create_connection(("127.0.0.1", self.here.port))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        bearer = self.here.token(subject="old-plotter")
        path = f"/api/v1/rps/{self.rps['ships/positions']}/stream"
        slow.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {bearer}\r\n\r\n".encode())
        self._sockets.append(slow)

    def _reader(self, name: str, subject: str) -> Reader:
        token = self.here.token(subject=subject, role="display")
        return Reader(self.network.background, self.here.url, token, self.rps[name], "now")

    def _subscriptions(self) -> None:
        for name, who, lease_s, kept in (
            ("ships/positions", "archive", 7 * 86_400, 1000),
            ("ships/positions", "chart-plotter", 7 * 86_400, 150),  # reads nothing, and loses what it does not read
            ("tides/north-pier", "archive", 7 * 86_400, 1000),
            ("tides/north-pier", "flood-model", 86_400, 1000),
            ("ships/arrivals", "invoicing", 3600, 1000),
            ("cranes/1/state", "maintenance", 420, 1000),
            ("pilots/requests", "pilot-rota", 2 * 86_400, 1000),
        ):
            with self.here.http(subject=who) as http:
                wanted = {"lease_s": lease_s, "history": {"max_events": kept}, "from": "now"}
                answer = http.post(f"/api/v1/rps/{self.rps[name]}/subscriptions", json=wanted)
                assert answer.status_code == 201, answer.text
                if who in ("archive", "invoicing", "pilot-rota"):
                    self._on(partial(self._acknowledge, answer.json()["id"], who), 3)

    def _endpoints(self) -> None:
        """Endpoints of every kind: well, slow to consent, failing, with dead letters, paused."""
        body = b'{"error": "schema mismatch", "field": "data.ship", "hint": "expected an IMO number"}'
        refusal = b"HTTP/1.1 422 No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        self._receiver.answer |= {"/billing/arrivals": refusal % (len(body), body), "/erp/movements": 503}
        for path, name, who, options in (
            ("/tide-app/levels", "tides/north-pier", "tide-app", {}),
            ("/billing/arrivals", "ships/arrivals", "invoicing", {"max_attempts": 1}),
            ("/erp/movements", "ships/departures", "port-erp", {}),
            ("/mute/pilot-board", "pilots/requests", "pilot-rota", {}),
            ("/maintenance/cranes", "cranes/1/state", "maintenance", {"ordered": False}),
            ("/archive/positions", "ships/positions", "archive", {"format": "batch"}),
        ):
            with self.here.http(subject=who) as http:
                stated = {"mode": "webhook", "url": self._receiver.url(path), "secret": "whsec_" + "A" * 40, **options}
                wanted = {"lease_s": 7 * 86_400, "from": "now", "deliver": stated}
                answer = http.post(f"/api/v1/rps/{self.rps[name]}/subscriptions", json=wanted)
                assert answer.status_code == 201, answer.text
                self.hooks[path] = str(answer.json()["id"])
        self.rps |= {f"hook{path}": found for path, found in self.hooks.items()}
        with self.here.http(subject="maintenance") as http:
            http.post(f"/api/v1/subscriptions/{self.hooks['/maintenance/cranes']}/endpoint/pause")
        for form, title, secret in (
            ("github", "Releases of the pilots' software", "s" * 20),
            ("plain", "Quay power", None),
        ):
            stated = {"format": form, "title": title, **({"secret": secret} if secret else {})}
            made = self.here.ask("POST", f"/api/v1/rps/{self.rps['pilots/requests']}/intakes", stated)
            if secret is None:
                httpx.post(made["url"], json={"berth": 4, "state": "on"}, trust_env=False).raise_for_status()

    def _acknowledge(self, subscription: str, who: str) -> None:
        with self.here.http(subject=who) as http:
            read = http.get(f"/api/v1/subscriptions/{subscription}/events").json()
            http.post(f"/api/v1/subscriptions/{subscription}/ack", json={"cursor": read["cursor"]})

    def _troubles(self) -> None:
        ask = self.here.ask
        ask(
            "PATCH",
            f"/api/v1/rps/{self.rps['cranes/2/state']}",
            {"watch": [{"silence": {"s": 20, "source": "/harbour.test/cranes/2"}, "severity": "critical", "for_s": 0}]},
        )
        ask("PATCH", f"/api/v1/rps/{self.rps['tides/north-pier']}", {
            "watch": [
                {"lag": {"events": 60, "seconds": 600}, "severity": "warning", "for_s": 0},
                {"silence": {"s": 30}, "severity": "critical", "for_s": 10},
                {"lease_gap": {"s": 86_400}, "severity": "warning", "for_s": 60},
            ],
            "audience": [{"label": "tide displays", "at_least": 2, "claims": {"role": {"equals": "display"}}, "publishing": "flag"}],
        })  # fmt: skip
        ask(
            "PATCH",
            f"/api/v1/rps/{self.rps['alerts/storm']}",
            {"audience": [{"label": "the harbour master", "at_least": 1, "claims": {"role": {"equals": "master"}}}]},
        )
        ask(
            "PUT",
            "/api/v1/watches",
            {
                "watch": [
                    {"backlog": {"oldest_s": 20}, "severity": "warning", "for_s": 0},
                    {"history_quota": {"percent": 90}},
                ]
            },
        )
        ask(
            "POST",
            f"/api/v1/rps/{self.rps['customs/declarations']}/pause",
            {"reason": "The form of declarations changes on Monday."},
        )
        for name, severity in (("harbour office", "warning"), ("on call", "critical")):
            point = {"name": name, "kind": "webhook", "severity": severity}
            ask("POST", "/api/v1/contact-points", {**point, "url": self._receiver.url(f"/notify/{name[:2]}")})
        ask(
            "POST", "/api/v1/revocations", {"kind": "subject", "value": "east-gauge", "reason": "Stolen from its mast."}
        )
        for subject, rps, ops in (
            ("north-gauge", ["tides/*"], ["publish"]),
            ("chart-plotter", ["ships/*"], ["subscribe"]),
        ):
            ask("POST", "/api/v1/tokens", {"subject": subject, "lease_s": 86_400, "scopes": [{"rps": rps, "ops": ops}]})
        with self.here.http(subject="tourist-app") as http:
            for _ in range(7):
                http.post(f"/api/v1/rps/{self.rps['customs/declarations']}/events", json={"crates": 1})
            http.delete(f"/api/v1/rps/{self.rps['tides/inner-basin']}")

    def _neighbours(self) -> None:
        """One after another, so that two domains at a time do: one asks and is gone, one is lost, one stays."""
        network = self.network
        self._start(ASKING)
        _patiently(lambda: network.add_peer(ASKING, HERE))
        network.stop(ASKING)
        self._start(LOST)
        self._peer(LOST)
        self._join(self.rps["pilots/requests"], LOST)
        _patiently(lambda: self.here.ask("POST", "/api/v1/overlay/found"))
        self._take_part(LOST)
        network.stop(LOST)
        self._start(WELL)
        self._peer(WELL)
        self._take_part(WELL)
        for name in ("tides/north-pier", "ships/positions"):
            self._join(self.rps[name], WELL)
        wind = {"name": WIND.name, "title": WIND.title, "policy": WIND.policy, "lease_s": 86_400}
        made = network[WELL].ask("POST", "/api/v1/rps", wind)
        self.rps[WIND.name] = made["id"]
        self._join(made["id"], HERE, WELL)
        self._publishing(network[WELL].http(subject="anemometer"), made["id"], WIND)
        self._placing()

    def _placing(self) -> None:
        """More histories are wanted than share no risk, and a peer invites this domain, whose standing policy answers."""
        positions = self.rps["ships/positions"]
        self.here.ask("PATCH", f"/api/v1/plan/rps/{positions}", {"histories": 3})
        gusts = {"name": "forecast/gusts", "title": "Gusts over the bay", "policy": WIND.policy, "lease_s": 86_400}
        made = self.network[WELL].ask("POST", "/api/v1/rps", gusts)
        invited = {"peer": f"{HERE}.test"}
        self.network[WELL].ask("POST", f"/api/v1/rps/{made['id']}/replicas", invited, expect=range(200, 504))

    def _start(self, name: str) -> None:
        _patiently(lambda: self.network.start(name))  # one that was not ready in time has been ended: it begins anew

    def _peer(self, other: str) -> None:
        """Both administrators agree; as often as it takes while the machine is busy with starting domains."""
        network = self.network
        for at, of in ((HERE, other), (other, HERE)):
            _patiently(lambda at=at, of=of: _added(network.peer_state(at, of)) or network.add_peer(at, of))  # type: ignore[misc]
        for at, of in ((HERE, other), (other, HERE)):
            wait_for(
                lambda at=at, of=of: network.peer_state(at, of) == "active",  # type: ignore[misc]
                120,
                every_s=0.5,
                about=f"{at} has {of}",
            )

    def _take_part(self, other: str) -> None:
        """A peer joins the overlay with this domain as its sponsor."""
        _patiently(lambda: self.network[other].ask("POST", "/api/v1/overlay/join", {"sponsor": f"{HERE}.test"}))

    def _join(self, rp: str, at: str, via: str = HERE) -> None:
        asked = {"rp": rp, "lease_s": 86_400, "via": f"{via}.test"}
        _patiently(lambda: self.network[at].ask("POST", "/api/v1/replicas", asked))

    # -- publishing ---------------------------------------------------------------------------------------------------

    def _publish_on(self, place: Place) -> None:
        program = self.here.http(subject=place.name.replace("/", "-"), role="sensor")
        self._publishing(program, self.rps[place.name], place)

    def _publishing(self, program: httpx.Client, rp: str, place: Place) -> None:
        numbers = itertools.count(1)

        def one() -> None:
            number = next(numbers)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            event = {
                "specversion": "1.0",
                "id": f"{number}",
                "source": place.source,
                "type": place.type,
                "time": now,
            }
            program.post(
                f"/api/v1/rps/{rp}/events",
                content=json.dumps({**event, "data": place.data(number)}),
                headers={"Content-Type": "application/cloudevents+json"},
            )

        self._clients.append(program)
        self._on(one, place.every_s)

    def _on(self, act: Callable[[], None], every_s: float) -> None:
        """Do it again and again; what a stopped domain does not answer is let be."""

        def run() -> None:
            chance = random.Random(every_s)
            while not self._ended.wait(every_s * chance.uniform(0.6, 1.4)):
                with suppress(*RETRY, KeyError, ValueError):
                    act()

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()
