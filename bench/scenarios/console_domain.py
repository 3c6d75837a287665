"""The domain of the console scenario: its content, its traffic, and the cost of its gateway."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any

import psutil
from joserfc.jwk import OKPKey

from bench.load import Load, LoadPlan
from bench.measure import Bench
from bench.peers.base import Route
from bench.peers.domain import BenchDomain
from bench.peers.herald import LEASE_S
from bench.processes import CannotStart, free_port
from eventing.peering.rules import domain_documents

RPS = 1000
SESSIONS_EACH = 5
RATE = 300.0  # events/s over all RPs: each is delivered SESSIONS_EACH times
TRAFFIC_S = 3600.0  # longer than any run: it is stopped
PEERS = 2
MANY = 100_000
_PUBLISHERS = 8
NAMED_BELOW = (100, 100)  # names of the many: so many areas, so many lines in each, the rest below those


class ConsoleDomain(BenchDomain):
    """One domain with an operator's console."""

    label = "Herald domain"

    def create_watched(self) -> str:
        """Return the id of an RP without a name and without traffic of its own."""
        stated = {"title": "Watched", "lease_s": LEASE_S, "history": {"max_events": 10_000, "max_bytes": 10 * 2**20}}
        return str(self.ask("POST", "/api/v1/rps", stated)["id"])

    def login_link(self) -> str:
        """Return a link that logs the administrator in once."""
        return self._manage("login_link").strip()

    @property
    def token(self) -> str:
        """Return an administrator's token."""
        return self._token

    def publish(self, rp: str, events: Sequence[Mapping[str, Any]]) -> None:
        """Publish a batch, and wait for its answer."""
        headers = {**dict(self._authorization()), "Content-Type": "application/cloudevents-batch+json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("POST", f"/api/v1/rps/{rp}/events", json.dumps(events), headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status != 201:
            raise CannotStart(f"publishing was answered {answer.status}: {text[:500]!r}")

    @property
    def gateway_cpu_s(self) -> float:
        """Return the CPU seconds of the gateway process since its start."""
        used = psutil.Process(self.pid_of("gateway")).cpu_times()
        return float(used.user + used.system)

    def add_strangers(self) -> list[str]:
        """Add peers that never answer, and return their names: their keys are made here, their addresses are unused."""
        names = [f"stranger-{number}.test" for number in range(1, PEERS + 1)]
        for name in names:
            made = OKPKey.generate_key("Ed25519")
            key = {**made.as_dict(private=True), "kid": made.thumbprint(), "nbf": 0}
            url = f"http://127.0.0.1:{free_port()}"
            said = {"domain": name, "url": url, "websocket": f"ws{url[4:]}/ws", "versions": [1]}
            statement = domain_documents.make({**said, "serial": 1, "issued_at": int(time.time())}, [key])
            document = domain_documents.published(statement)
            self.ask("POST", "/api/v1/peers", {"document": document, "fingerprint": key["kid"]})
        return names

    # -- many ---------------------------------------------------------------------------------------------------------

    def prepare(self, streams: int, history_events: int = 1000) -> None:
        """Make one RP by REST, and copies of it in SQL, which takes a second and not a minute."""
        super().prepare(1, history_events)
        ids = [_id(-number) for number in range(1, streams)]
        with self._database() as database:
            _copy(database, "eventing_rendezvouspoint", self.rps[0], ({"id": one} for one in ids))
        self.rps += ids
        first = {"specversion": "1.0", "id": "first", "source": "/bench/console", "type": "bench", "data": 0}
        with ThreadPoolExecutor(_PUBLISHERS) as pool:
            list(pool.map(lambda rp: self.publish(rp, [first]), self.rps))  # each has its log then

    def fill(self, rp: str, subscription: str) -> None:
        """Write as many RPs and subscriptions as MANY into SQL, as copies of these two."""
        with self._database() as database:
            _copy(database, "eventing_rendezvouspoint", rp, _rps())
            _copy(database, "eventing_subscription", subscription, _subscriptions())

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.folder / "herald" / "herald.sqlite3", timeout=60)) as database, database:
            yield database


def _id(number: int) -> str:
    return base64.b32encode(hashlib.sha256(b"%d" % number).digest()).decode().lower()[:26]


def _end(number: int) -> str:
    """Return an end of lease within a day, never twice, after the copied one's warning; as Django writes it."""
    moment = datetime.now(UTC) + timedelta(hours=11, seconds=number * 0.8, microseconds=number)
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")


def _rps() -> Iterator[dict[str, Any]]:
    areas, lines = NAMED_BELOW
    for number in range(MANY):
        path = f"area-{number % areas:02}/line-{number // areas % lines:02}/sensor-{number:06}"
        yield {
            "id": _id(number),
            "name": f"/console.test/{path}/",
            "title": f"Sensor {number}",
            "created_at": f"2026-01-01 00:00:{number % 60:02}.{number:06}",
            "expires_at": _end(number),
        }


def _subscriptions() -> Iterator[dict[str, Any]]:
    for number in range(MANY):
        rp = _id(number)
        yield {
            "id": f"many-{number:025}",
            "rp_id": rp,
            "at": rp,
            "owner": f"reader-{number}",
            "expires_at": _end(number),
        }


def _copy(database: sqlite3.Connection, table: str, template: str, rows: Iterator[dict[str, Any]]) -> None:
    """Insert rows of `table` that are copies of the one with id `template` but for the members given."""
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    first = next(rows)
    taken = ", ".join(f":{column}" if column in first else f'"{column}"' for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    statement = f"INSERT INTO {table} ({names}) SELECT {taken} FROM {table} WHERE id = :template"
    database.executemany(statement, ({**row, "template": template} for row in _first_and_rest(first, rows)))


def _first_and_rest(first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield first
    yield from rest


class Traffic:
    """Ordinary traffic while the block runs: reading sessions, and a publisher at a steady pace."""

    def __init__(self, bench: Bench, domain: ConsoleDomain) -> None:
        answers = domain.routes[Route.WEBSOCKET]
        plan = LoadPlan(
            port=domain.port,
            sessions=[domain.reader([stream]) for _ in range(SESSIONS_EACH) for stream in range(RPS)],
            publishers=[domain.publisher(Route.WEBSOCKET)],
            templates=[domain.request(Route.WEBSOCKET, stream) for stream in range(RPS)],
            ready=domain.ready,
            publisher_ready=answers.publisher_ready,
            good=answers.good,
            bad=answers.bad,
            rate=RATE,
            seconds=TRAFFIC_S,
            window=64,
            streams=RPS,
            by_stream=True,
            deliveries_per_event=1,  # it is stopped before it would count
        )
        self._load = _Stopped(bench.program, plan, bench.folder / f"plan-console-{domain.port}")

    def __enter__(self) -> None:
        self._load.__enter__()
        try:
            self._load.open()
            self._load.ready()
            self._load.begin()
        except BaseException:
            self._load.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._load.stop()


class _Stopped(Load):
    """A run that continues in the background until it is stopped, and is not counted."""

    def begin(self) -> None:
        """Publish from now on."""
        self._go_on()

    def stop(self) -> None:
        """End it at once."""
        self.__exit__(KeyboardInterrupt, None, None)
