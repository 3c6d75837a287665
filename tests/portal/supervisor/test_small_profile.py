"""The profile small with real processes: everything that a domain does works, and survives what it survives otherwise."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from bench.processes import idle_costs
from demo.harness.network import Network
from demo.harness.servers import ROOT, Domain, wait_for
from tests.conftest import DELIVERING, DomainFactory
from tests.gateway.server import PLAIN, Prepared
from tests.processes import alive
from tests.subscriptions.push.owner import Owner
from tests.subscriptions.push.receiver import Receiver, own_host

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]

SMALL: dict[str, Any] = {**DELIVERING, "profile": "small", "reports": "off"}
# Twice the figures of docs/benchmarks.md, for a build with other libraries, and more of the processor, for a busy machine.
PSS_MIB_MAX = 300.0
CPU_MS_PER_S_MAX = 60.0


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Domain]:
    """A small domain of these tests."""
    with Domain(tmp_path_factory.mktemp("small") / "var", seed=prepared.migrated, **SMALL) as domain:
        yield domain


def test_a_small_domain_is_one_process_beside_redis_and_a_supervisor_without_django(own: Domain) -> None:
    assert set(own.pids) == {"redis", "domain"}
    assert set(httpx.get(f"{own.url}/readyz", **PLAIN).json()["checks"]) >= {"forwarder", "deliverer"}
    sizes = {name: psutil.Process(pid).memory_info().rss for name, pid in own.pids.items()}
    assert psutil.Process(own.supervisor.pid).memory_info().rss < sizes["domain"] / 2


def test_events_are_published_and_delivered_to_an_endpoint(own: Domain) -> None:
    with Receiver(host=own_host()) as receiver:
        owner = Owner(own)
        owner.hook(receiver.url("/ok"))
        owner.publish(*range(20))
        wait_for(lambda: len(receiver.data("/ok")) >= 20, about="all arrive")
        assert receiver.data("/ok") == list(range(20))


def test_what_only_time_brings_about_is_done_while_nothing_else_happens(own: Domain) -> None:
    with own.http(admin=True) as admin:
        rp = admin.post("/api/v1/rps", json={"lease_s": 2}).json()["id"]

        def reaped() -> bool:
            page = admin.get("/api/v1/rps/domain.admin/events?limit=500&after=earliest").json()
            return any(
                one["type"] == "io.herald.rp.deleted" and one["data"]["rp"]["id"] == rp for one in page["events"]
            )

        wait_for(reaped, 60, every_s=0.2, about="the expired RP is removed")


def test_a_killed_domain_is_started_again_and_nothing_acknowledged_is_lost(own: Domain) -> None:
    with own.http(admin=True) as admin:
        rp = admin.post("/api/v1/rps", json={}).json()["id"]
        for name in ("domain", "redis"):
            admin.post(f"/api/v1/rps/{rp}/events", json={"before": name}).raise_for_status()
            own.wait_replaced(name, own.kill(name))
            wait_for(own.is_ready, 60, about="ready again")
        events = admin.get(f"/api/v1/rps/{rp}/events?after=earliest").json()["events"]
        assert [event["data"] for event in events] == [{"before": "domain"}, {"before": "redis"}]


def test_the_processors_time_and_memory_are_measured_once(own: Domain) -> None:
    with own.http(admin=True) as admin:
        text = admin.get("/metrics").text
    started = [line.split('"')[1] for line in text.splitlines() if line.startswith("process_start_time_seconds{")]
    assert started == ["domain"]


def test_the_doctor_names_the_profile_and_what_it_changes(own: Domain) -> None:
    said = own.manage("doctor").stdout
    assert "small, as HERALD_PROFILE states" in said
    assert any(line.split()[:3] == ["+", "HERALD_WORKERS", "0"] for line in said.splitlines()), said


def test_ctrl_c_stops_it_in_time_and_the_next_start_finds_the_data(own: Domain) -> None:
    with own.http(admin=True) as admin:
        rp = admin.post("/api/v1/rps", json={}).json()["id"]
        admin.post(f"/api/v1/rps/{rp}/events", json={"kept": True}).raise_for_status()
    everything = [psutil.Process(own.supervisor.pid), *psutil.Process(own.supervisor.pid).children(recursive=True)]
    began = time.monotonic()
    assert own.stop() == 0
    assert time.monotonic() - began < 25  # ten, and what a busy machine may take beyond
    assert alive(everything) == []
    assert "was killed" not in own.output
    own.start()
    with own.http(admin=True) as admin:
        (event,) = admin.get(f"/api/v1/rps/{rp}/events?after=earliest").json()["events"]
    assert event["data"] == {"kept": True}


def test_a_start_that_fails_is_said_in_one_sentence(new_domain: DomainFactory) -> None:
    domain = new_domain(start=False, **SMALL)
    domain.data_dir.mkdir(parents=True)
    (domain.data_dir / "herald.sqlite3").write_bytes(b"no database" * 1000)
    assert domain.spawn().wait(60) == 1
    assert "Herald did not start. domain ended at once (exit code 1): The database" in domain.output


def test_a_killed_supervisor_leaves_no_process_behind(own: Domain) -> None:
    process = psutil.Process(own.pids["domain"])
    os.kill(own.supervisor.pid, signal.SIGKILL)
    wait_for(lambda: not alive([process]), 20, about="the domain ends with its supervisor")
    own.stop()
    own.start()


@pytest.mark.long
def test_two_small_domains_carry_each_others_events(tmp_path: Path, prepared: Prepared) -> None:
    with Network(tmp_path, "ab", seed=prepared.migrated, **{**SMALL, "push": 0}) as network:
        network.shape([("a", "b")])
        rp = network.create_rp("a")
        network.join(rp, "b")
        reader = network.reader(rp, "b")
        network.publish(rp, "a", 20)
        reader.has(network.published[rp])
        network.kill("a", "domain")
        network.publish(rp, "a", 20)
        reader.has(network.published[rp])
        network.converged(rp)


@pytest.mark.long
def test_an_idle_small_domain_costs_little(new_domain: DomainFactory) -> None:
    domain = new_domain(**{**SMALL, "records": 1})
    with domain.http(admin=True) as admin:
        for _ in range(20):
            admin.post("/api/v1/rps", json={}).raise_for_status()
    supervisor = psutil.Process(domain.supervisor.pid)

    def family() -> list[int]:
        return [supervisor.pid, *(child.pid for child in supervisor.children(recursive=True))]

    def quiet() -> bool:
        costs = idle_costs(family, 12.0)
        return costs.pss_bytes / 1024**2 <= PSS_MIB_MAX and costs.cpu_ms_per_s <= CPU_MS_PER_S_MAX

    wait_for(quiet, 120, about=f"at most {PSS_MIB_MAX:g} MiB and {CPU_MS_PER_S_MAX:g} ms/s")
    mapped = Path(f"/proc/{domain.pids['domain']}/maps").read_text()
    assert [name for name in ("libarrow", "libpq", "openblas", "lxml", "charset_normalizer") if name in mapped] == [], (
        "it never needs these"
    )


def test_reports_of_this_machine_are_listed_and_read_without_arrow(tmp_path: Path) -> None:
    looked = (
        "import sys\n"
        "from spark.locations import Location\n"
        "place = Location(sys.argv[1])\n"
        "print([(one.name, one.is_file, one.size) for one in place.entries(place.root, recursive=True)])\n"
        "print(place.read_json(place.path('run=1', 'report.json')), place.read(place.path('none')), place.entries('/no/such'))\n"
        "place.remove_folder(place.path('run=1')), place.remove_folder(place.path('run=1'))\n"
        "print(place.entries(place.root), 'pyarrow' in sys.modules)\n"
    )
    for address in (str(tmp_path), f"file://{tmp_path}"):
        (tmp_path / "run=1").mkdir(exist_ok=True)
        (tmp_path / "run=1" / "report.json").write_text("{}")
        said = subprocess.run(
            [sys.executable, "-c", looked, address], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )
        assert said.stdout.splitlines() == ["[('run=1', False, 0), ('report.json', True, 2)]", "{} None []", "[] False"]
