"""The domain and the endpoints of the scenario `push`: subscriptions made by the thousand, events that carry their time."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from bench.peers.domain import BenchDomain
from bench.peers.herald import ROOT
from bench.processes import LOAD_CORE, CannotStart, pin, resident_of

DATA_CHARS = 128
READY_WITHIN_S = 60.0
_MADE = """
import json, os
from eventing.sql.random_ids import random_id
from eventing.store.push_attempts import push_notify
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.services.vault import EndpointSecrets, seal, unseal
from eventing.subscriptions.push.ws_eventing.sinks import StoredReference, sink_parse, sink_text
from msgspec.structs import replace
asked = json.loads(os.environ["BENCH_PUSH"])
row = Subscription.objects.get(pk=asked["subscription"])
endpoint = PushEndpoint.objects.get(pk=row.pk)
held = unseal(row.pk, bytes(endpoint.sealed))
rows, endpoints = [], []
for number in range(asked["count"]):
    url = f"http://127.0.0.1:{asked['ports'][number % len(asked['ports'])]}/{row.at}/{number}"
    row.pk = f"sub_{random_id()}"
    data = held.mode_data and sink_text(replace(sink_parse(held.mode_data), notify_to=StoredReference(url)))
    rows.append(Subscription(**{field.attname: getattr(row, field.attname) for field in Subscription._meta.concrete_fields}))
    endpoints.append(PushEndpoint(
        subscription_id=row.pk, sealed=seal(row.pk, EndpointSecrets(url, (), held.secrets, mode_data=data)), host="127.0.0.1",
        state="active", state_at=endpoint.state_at, verified=True))
Subscription.objects.bulk_create(rows, batch_size=500)
PushEndpoint.objects.bulk_create(endpoints, batch_size=500)
Subscription.objects.filter(pk=asked["subscription"]).delete()
for one in rows:
    push_notify(one.pk)
"""
"""Copies of a subscription with endpoints that have consented: asking thousands would take hours, on purpose."""
_SUBSCRIBE = """
<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:wsa="http://www.w3.org/2005/08/addressing"
            xmlns:wse="http://www.w3.org/2011/03/ws-evt"><s:Header><wsa:MessageID>urn:bench</wsa:MessageID>
<wsa:Action>http://www.w3.org/2011/03/ws-evt/Subscribe</wsa:Action></s:Header><s:Body><wse:Subscribe><wse:Delivery><wse:NotifyTo>
<wsa:Address>%s</wsa:Address></wse:NotifyTo></wse:Delivery></wse:Subscribe></s:Body></s:Envelope>"""
_SUBSCRIBED = re.compile(r"/subscriptions/(sub_\w+)/")
WS_EVENTING = "ws-eventing"


class TakenEvents(NamedTuple):
    """Events that the endpoints took."""

    events: int
    requests: int
    repeated: int
    skipped: int
    delays_ms: list[float]
    ended_ns: int


class PushEndpoints:
    """The process of the endpoints. Use as a context manager."""

    def __init__(self, good: int, dead: int) -> None:
        self._asked = (good, dead)

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "bench.push_endpoint", *map(str, self._asked)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, preexec_fn=pin(LOAD_CORE))
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CannotStart("the endpoints did not start")
        ports = json.loads(line)
        self.good, self.dead = list(map(int, ports["good"])), list(map(int, ports["dead"]))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def taken(self) -> TakenEvents:
        """Return the events received since the last call."""
        connection = http.client.HTTPConnection("127.0.0.1", self.good[0], timeout=30)
        try:
            connection.request("GET", "/taken")
            return TakenEvents(**json.loads(connection.getresponse().read()))
        finally:
            connection.close()


class PushDomain(BenchDomain):
    """A domain that delivers to endpoints of this machine."""

    all_cores = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "push")
        self._numbers: dict[str, int] = {}
        self._connection: http.client.HTTPConnection | None = None
        self._extra: dict[str, str] = {}

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {"HERALD_PUSH_PRIVATE": "1", "HERALD_PUSH_PORTS": "1-65535"} | self._extra

    def rp_with(self, count: int, endpoints: PushEndpoints, **deliver: Any) -> str:
        """Return a new RP with so many subscriptions, spread over the good ports, all of which an event has reached."""
        stated = {"lease_s": 36_000, "history": {"max_events": 100_000, "max_bytes": 2**27}}
        rp = str(self.ask("POST", "/api/v1/rps", stated)["id"])
        self.subscribe(rp, count, endpoints.good, **deliver)
        endpoints.taken()
        self.publish(rp)
        self.await_taken(endpoints, count)
        return rp

    def subscribe(self, rp: str, count: int, ports: Sequence[int], **deliver: Any) -> None:
        """Make subscriptions with endpoints at these ports of this machine, each with a path of its own, and a secret."""
        url = f"http://127.0.0.1:{ports[0]}/"
        if deliver.get("mode") == WS_EVENTING:
            made = self._subscribed_by_soap(rp, url)
        else:
            secret = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"
            body = {"deliver": {"mode": "webhook", "url": url, "secret": secret, **deliver}}
            made = self.ask("POST", f"/api/v1/rps/{rp}/subscriptions", body)["id"]
        self._extra = {"BENCH_PUSH": json.dumps({"subscription": made, "count": count, "ports": list(ports)})}
        self._manage("shell", "-c", _MADE)
        self._extra = {}

    def _subscribed_by_soap(self, rp: str, url: str) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            kind = {"Content-Type": "application/soap+xml"}
            path = f"/api/v1/rps/{rp}/ws-eventing"
            connection.request("POST", path, _SUBSCRIBE % url, {**dict(self._authorization()), **kind})
            answer = connection.getresponse().read().decode()
        finally:
            connection.close()
        found = _SUBSCRIBED.search(answer)
        if found is None:
            raise CannotStart(f"Subscribe was answered {answer}")
        return found[1]

    def await_taken(self, endpoints: PushEndpoints, events: int, within_s: float = READY_WITHIN_S) -> TakenEvents:
        """Wait until so many events have arrived, and return them. Raises CannotStart."""
        deadline = time.monotonic() + within_s
        taken = endpoints.taken()
        while taken.events < events:
            if time.monotonic() > deadline:
                raise CannotStart(f"{taken.events:,} of {events:,} events came within {within_s:g} s")
            time.sleep(0.1)
            more = endpoints.taken()
            taken = TakenEvents(
                taken.events + more.events,
                taken.requests + more.requests,
                taken.repeated + more.repeated,
                taken.skipped + more.skipped,
                taken.delays_ms + more.delays_ms,
                max(taken.ended_ns, more.ended_ns),
            )
        return taken

    def publish(self, rp: str, count: int = 1) -> None:
        """Publish events in one batch, numbered in order, each with the time of this call."""
        first = self._numbers.get(rp, 0) + 1
        self._numbers[rp] = first + count - 1
        pad = "x" * (DATA_CHARS - 40)
        events = ",".join(
            f'{{"specversion":"1.0","id":"{rp}-{number}","source":"/bench/push","type":"bench",'
            f'"data":{{"n":{number},"at":{time.monotonic_ns()},"pad":"{pad}"}}}}'
            for number in range(first, first + count)
        )
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {**dict(self._authorization()), "Content-Type": "application/cloudevents-batch+json"}
        self._connection.request("POST", f"/api/v1/rps/{rp}/events", f"[{events}]", headers)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status != 201:
            raise CannotStart(f"publishing was answered {answer.status}")

    def cpu_s(self) -> float:
        """Return the CPU seconds of all processes of the domain."""
        return self.processes.everything_cpu_s()

    def deliverer_bytes(self) -> int:
        """Return the resident memory of the deliverer."""
        return resident_of(self.pid_of("deliverer"))
