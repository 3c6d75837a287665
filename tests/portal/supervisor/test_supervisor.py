"""`make run` with real processes: it stops in time and keeps its data, restarts what falls over, leaves nothing behind.

A start costs as much as everything else here, so the tests share a domain of theirs (`running`, `stopped`): one begins with
what the one before it left.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import psutil
import pytest
import redis

from demo.harness.servers import ROOT, Domain, manage, program, wait_for
from eventing.core.config import Config
from portal.supervisor import redis_server
from portal.supervisor.process_group import SECOND_CTRL_C_AFTER_S
from tests.conftest import DomainFactory
from tests.gateway.server import Prepared
from tests.processes import alive

pytestmark = pytest.mark.processes
UNIX_PATH_BYTES_MAX = 107
BUSY_S = 15.0  # that a busy machine may take beyond a time that the supervisor keeps; less than Domain.stop waits for


def everything_under(domain: Domain) -> list[psutil.Process]:
    return [psutil.Process(domain.supervisor.pid), *psutil.Process(domain.supervisor.pid).children(recursive=True)]


def config_of(domain: Domain) -> Config:
    return Config.from_env(domain.env)


def redis_of(domain: Domain) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(config_of(domain).redis_socket), decode_responses=True)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Domain]:
    """A domain of these tests, with two gateways, an old Java, and a path too long for a unix socket in its folder."""
    folder = tmp_path_factory.mktemp("own")
    java = program(folder / "bin", "java", "echo 'openjdk version \"11.0.2\"' >&2")
    path = {"PATH": f"{java.parent}:{os.environ['PATH']}", "JAVA_HOME": ""}
    domain = Domain(folder / ("deep" * 20) / ("er" * 20) / "var", seed=prepared.migrated, extra_env=path, gateways=2)
    yield domain
    try:
        domain.stop()
    finally:
        domain.kill_everything()


@pytest.fixture
def running(own: Domain) -> Domain:
    """It runs, and a test may end it as it likes."""
    return own if own.is_running else own.start()


@pytest.fixture
def stopped(own: Domain) -> Domain:
    """It does not run, and a test may start it."""
    own.stop()
    own.kill_everything()
    return own


@pytest.mark.long
def test_a_data_folder_with_a_very_long_path_works(running: Domain) -> None:
    assert len(str(running.data_dir / "redis.sock")) > UNIX_PATH_BYTES_MAX
    assert running.manage("doctor").returncode == 0


def test_without_java_reports_are_off_and_everything_else_runs(running: Domain) -> None:
    assert "reports    off       Java 11 found, 17 or newer is needed; everything else runs" in running.output
    wait_for(running.is_ready, about="/readyz, where parts answer in time")


def test_several_gateways_share_the_port(running: Domain) -> None:
    assert {"gateway-1", "gateway-2"} <= set(running.pids)
    gateway = psutil.Process(running.pids["gateway-1"])
    pid = running.kill("gateway-1")
    wait_for(lambda: not alive([gateway]), about="it is gone, and with it what it had accepted")
    for _ in range(20):  # while one is away, the other serves; no connection is refused
        assert httpx.get(f"{running.url}/livez", timeout=10, trust_env=False).status_code == 200
    running.wait_replaced("gateway-1", pid)


def test_the_start_says_what_runs_where_and_how_to_log_in(running: Domain) -> None:
    for expected in ("redis", "gateway", "worker", "forwarder", running.url, "/login/once/", "herald sub", "Ctrl-C"):
        assert expected in running.output
    assert "\x1b" not in running.output  # no colours into a file
    assert set(running.pids) == {"redis", "gateway-1", "gateway-2", "worker", "forwarder"}


@pytest.mark.long
@pytest.mark.skipif(not (ROOT / ".venv/bin/herald").exists(), reason="the virtual environment is somewhere else")
def test_the_next_commands_it_prints_work_word_for_word(running: Domain) -> None:
    wait_for(lambda: "Ctrl-C stops" in running.output, about="its summary is printed after it is ready")
    printed = running.output.split("Next, in another terminal:\n")[1].split("\n\n")[0]
    script = "set -e\n" + printed + " --count 1\n"
    environment = {name: value for name, value in running.env.items() if not name.startswith("HERALD_")}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Hello, world" in done.stdout


def test_the_embedded_redis_is_private_and_fsyncs_every_write(running: Domain) -> None:
    assert config_of(running).redis_socket.stat().st_mode & 0o777 == 0o600
    settings = redis_of(running).config_get("*")
    assert (settings["appendonly"], settings["appendfsync"], settings["save"], settings["port"]) == (
        "yes",
        "always",
        "",
        "0",
    )


def test_what_a_domain_writes_is_readable_by_its_user_only(running: Domain) -> None:
    for path in running.data_dir.rglob("*"):
        with suppress(FileNotFoundError):  # a journal or a temporary file, gone since the folder was read
            assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("name", ["gateway-1", "worker", "forwarder", "redis"])
def test_a_killed_process_is_started_again(running: Domain, name: str) -> None:
    supervisor = running.table["supervisor"]["pid"]
    pid = running.kill(name)
    running.wait_replaced(name, pid)
    wait_for(running.is_ready, about="the domain is ready again")
    assert running.table["supervisor"]["pid"] == supervisor
    assert f"{name:<10} exited (killed by SIGKILL); restarting" in running.output


def test_a_second_domain_on_the_same_data_folder_is_refused_in_one_sentence(running: Domain) -> None:
    second = manage("run", env={**running.env, "HERALD_PORT": "1"})
    assert second.returncode == 1
    assert len(second.stderr.strip().splitlines()) == 1
    assert "already runs on the data folder" in second.stderr
    assert running.url in second.stderr
    wait_for(running.is_ready, about="/readyz of the first")


def test_an_occupied_port_is_said_at_once_in_one_sentence(new_domain: DomainFactory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupant:
        domain = new_domain(start=False, port=occupant.getsockname()[1])
        refused = manage("run", env=domain.env)
    assert refused.returncode == 1
    assert len(refused.stderr.strip().splitlines()) == 1
    assert f"Port {domain.port} on 127.0.0.1 is taken by" in refused.stderr
    assert f"(pid {os.getpid()})" in refused.stderr
    assert "HERALD_PORT" in refused.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_stop_takes_ten_seconds_at_most_and_the_next_start_finds_the_data(
    running: Domain, number: signal.Signals
) -> None:
    redis_of(running).set(f"kept through {number}", "yes")
    processes = everything_under(running)
    begun = time.monotonic()
    assert running.stop(number) == 0
    assert time.monotonic() - begun < 10 + BUSY_S
    wait_for(lambda: not alive(processes), about="all have ended")
    assert not running.table
    said = len(running.output)
    running.start()
    assert redis_of(running).get(f"kept through {number}") == "yes"
    assert "up to date" in running.output[said:]


@pytest.mark.long
def test_a_worker_that_hangs_does_not_stretch_the_stop(running: Domain) -> None:
    said = len(running.output)
    for name in ("worker", "forwarder", "gateway-1"):
        os.kill(running.pids[name], signal.SIGSTOP)
    begun = time.monotonic()
    assert running.stop() == 0
    assert time.monotonic() - begun < 10 + BUSY_S
    for name in ("worker", "forwarder", "gateway-1"):
        assert f"{name:<10} did not stop in time and was killed" in running.output[said:]


@pytest.mark.long
def test_a_redis_that_outlived_its_supervisor_is_stopped_by_the_next_start(stopped: Domain) -> None:
    command = redis_server.command(redis_server.find_server(), config_of(stopped))
    orphan = psutil.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: config_of(stopped).redis_socket.exists(), about="the orphan listens")
        wait_for(lambda: redis_of(stopped).ping(), about="the orphan answers")
        redis_of(stopped).set("written", "by the orphan")
        stopped.start()
        assert not orphan.is_running() or orphan.wait(30) is not None
        assert redis_of(stopped).get("written") == "by the orphan"
        assert f"left-over server (pid {orphan.pid})" in stopped.output
    finally:
        if orphan.is_running():
            orphan.kill()
            orphan.wait()


def test_a_killed_supervisor_leaves_no_process_behind(running: Domain) -> None:
    processes = everything_under(running)
    assert len(processes) >= 6  # the worker's pool is among them
    running.supervisor.kill()
    running.supervisor.wait()
    wait_for(lambda: not alive(processes), 30, about=f"all gone: {processes}")
    running.start()  # on the same data, over the dead one's files


def test_a_second_ctrl_c_kills_everything_at_once(running: Domain) -> None:
    processes = everything_under(running)
    said = len(running.output)
    os.kill(running.pids["worker"], signal.SIGSTOP)  # a worker that would use up its time
    running.supervisor.send_signal(signal.SIGINT)
    wait_for(lambda: running.table.get("state") == "stopping", about="the first press is seen")
    time.sleep(2 * SECOND_CTRL_C_AFTER_S)  # a second press, not the same press seen twice
    running.supervisor.send_signal(signal.SIGINT)
    running.supervisor.wait(60)
    assert "did not stop in time" not in running.output[said:], "nothing waited for the worker"
    wait_for(lambda: not alive(processes), about="all are gone")
