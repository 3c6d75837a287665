"""`make run` with real processes: it stops in time and keeps its data, restarts what falls over, leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time

import httpx
import psutil
import pytest
import redis

from eventing.core.config import Config
from portal.supervisor import redis_server
from tests.conftest import DomainFactory
from tests.servers import ROOT, Domain, manage, wait_for

pytestmark = pytest.mark.processes


def everything_under(domain: Domain) -> list[psutil.Process]:
    return [psutil.Process(domain.supervisor.pid), *psutil.Process(domain.supervisor.pid).children(recursive=True)]


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def redis_of(domain: Domain) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(domain.data_dir / "redis.sock"), decode_responses=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_takes_ten_seconds_at_most_and_the_next_start_finds_the_data(
    new_domain: DomainFactory, number: signal.Signals
) -> None:
    domain = new_domain()
    redis_of(domain).set("kept", "yes")
    processes = everything_under(domain)
    begun = time.monotonic()
    assert domain.stop(number) == 0
    assert time.monotonic() - begun < 10
    assert not alive(processes)
    assert not domain.table
    domain.start()
    assert redis_of(domain).get("kept") == "yes"
    assert "up to date" in domain.output.split("Stopped.")[1]


def test_the_start_says_what_runs_where_and_how_to_log_in(domain: Domain) -> None:
    for expected in ("redis", "gateway", "worker", "beat", domain.url, "/login/once/", "herald sub", "Ctrl-C"):
        assert expected in domain.output
    assert "\x1b" not in domain.output  # no colours into a file
    assert set(domain.pids) == {"redis", "gateway", "worker", "beat"}


@pytest.mark.skipif(not (ROOT / ".venv/bin/herald").exists(), reason="the virtual environment is somewhere else")
def test_the_next_commands_it_prints_work_word_for_word(domain: Domain) -> None:
    printed = domain.output.split("Next, in another terminal:\n")[1].split("\n\n")[0]
    script = "set -e\n" + printed + " --count 1\n"
    environment = {name: value for name, value in domain.env.items() if not name.startswith("HERALD_")}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Hello, world" in done.stdout


def test_the_embedded_redis_is_private_and_fsyncs_every_write(domain: Domain) -> None:
    assert (domain.data_dir / "redis.sock").stat().st_mode & 0o777 == 0o600
    settings = redis_of(domain).config_get("*")
    assert (settings["appendonly"], settings["appendfsync"], settings["save"], settings["port"]) == (
        "yes",
        "always",
        "",
        "0",
    )


def test_what_a_domain_writes_is_readable_by_its_user_only(domain: Domain) -> None:
    for path in domain.data_dir.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("name", ["gateway", "worker", "beat", "redis"])
def test_a_killed_process_is_started_again(domain: Domain, name: str) -> None:
    supervisor = domain.table["supervisor"]["pid"]
    pid = domain.kill(name)
    domain.wait_replaced(name, pid)
    wait_for(domain.is_ready, about="the domain is ready again")
    assert domain.table["supervisor"]["pid"] == supervisor
    assert f"{name:<10} ended (killed by SIGKILL); starting it again" in domain.output


def test_a_killed_supervisor_leaves_no_process_behind(new_domain: DomainFactory) -> None:
    domain = new_domain()
    processes = everything_under(domain)
    assert len(processes) >= 6  # the worker's pool is among them
    domain.supervisor.kill()
    domain.supervisor.wait()
    wait_for(lambda: not alive(processes), 5, about=f"all gone: {processes}")
    domain.start()  # on the same data, over the dead one's files


def test_a_redis_that_outlived_its_supervisor_is_stopped_by_the_next_start(new_domain: DomainFactory) -> None:
    domain = new_domain()
    domain.stop()
    command = redis_server.command(redis_server.find_server(), Config.from_env(domain.env))
    orphan = psutil.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: (domain.data_dir / "redis.sock").exists(), about="the orphan listens")
        wait_for(lambda: redis_of(domain).ping(), about="the orphan answers")
        redis_of(domain).set("written", "by the orphan")
        domain.start()
        assert not orphan.is_running() or orphan.wait(1) is not None
        assert redis_of(domain).get("written") == "by the orphan"
        assert f"left-over server (pid {orphan.pid})" in domain.output
    finally:
        if orphan.is_running():
            orphan.kill()
            orphan.wait()


def test_several_gateways_share_the_port(new_domain: DomainFactory) -> None:
    domain = new_domain(gateways=2)
    assert {"gateway-1", "gateway-2"} <= set(domain.pids)
    pid = domain.kill("gateway-1")
    for _ in range(20):  # while one is away, the other serves; no connection is refused
        assert httpx.get(f"{domain.url}/livez", timeout=10, trust_env=False).status_code == 200
    domain.wait_replaced("gateway-1", pid)


def test_a_second_domain_on_the_same_data_folder_is_refused_in_one_sentence(domain: Domain) -> None:
    second = manage("run", env={**domain.env, "HERALD_PORT": "1"})
    assert second.returncode == 1
    assert len(second.stderr.strip().splitlines()) == 1
    assert "already runs on the data folder" in second.stderr
    assert domain.url in second.stderr
    assert domain.is_ready()


def test_an_occupied_port_is_said_at_once_in_one_sentence(new_domain: DomainFactory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupant:
        domain = new_domain(start=False, port=occupant.getsockname()[1])
        refused = manage("run", env=domain.env)
    assert refused.returncode == 1
    assert len(refused.stderr.strip().splitlines()) == 1
    assert f"Port {domain.port} on 127.0.0.1 is taken by" in refused.stderr
    assert f"(pid {os.getpid()})" in refused.stderr
    assert "HERALD_PORT" in refused.stderr


def test_a_second_ctrl_c_kills_everything_at_once(new_domain: DomainFactory) -> None:
    domain = new_domain()
    processes = everything_under(domain)
    os.kill(domain.pids["worker"], signal.SIGSTOP)  # a worker that would use up its time
    domain.supervisor.send_signal(signal.SIGINT)
    time.sleep(0.5)  # a second press, not the same press seen twice
    begun = time.monotonic()
    domain.supervisor.send_signal(signal.SIGINT)
    domain.supervisor.wait(5)
    assert time.monotonic() - begun < 1.5
    assert not alive(processes)


def test_a_worker_that_hangs_does_not_stretch_the_stop(new_domain: DomainFactory) -> None:
    domain = new_domain()
    for name in ("beat", "worker", "gateway"):
        os.kill(domain.pids[name], signal.SIGSTOP)
    begun = time.monotonic()
    assert domain.stop() == 0
    assert time.monotonic() - begun < 10
    assert "worker     did not stop in time and was killed" in domain.output


def test_a_data_folder_with_a_very_long_path_works(new_domain: DomainFactory, tmp_path: object) -> None:
    domain = new_domain(start=False)
    domain.data_dir = domain.data_dir / ("deep" * 20) / ("er" * 20)
    domain.data_dir.mkdir(parents=True)
    domain.start()
    assert domain.manage("doctor").returncode == 0
