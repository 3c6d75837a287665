"""The guides for integrators: their programs are those of examples/, and their commands do what the guides say."""

from __future__ import annotations

import re
import subprocess
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from demo.harness.servers import Domain, free_port, wait_for
from tests.examples.running import blocks, tool
from tests.examples.shell import ran

pytestmark = [pytest.mark.processes, pytest.mark.long]


def test_the_commands_for_any_language_publish_read_follow_and_acknowledge(site: Domain, tmp_path: Path) -> None:
    tool("curl")
    name = f"guide-{free_port()}"  # other tests share the domain
    told = ran("\n".join(blocks("from-any-language.md", "sh")).replace("orders", name), site, tmp_path)
    assert told.count('"order":1') + told.count('"order": 1') >= 2, "pulled, and streamed"
    assert '"id":"order-2"' in told.replace('": "', '":"')
    assert "data: {" in told
    with site.http(subject="integrator") as http:
        found = http.get("/api/v1/subscriptions", params={"rp": name}).raise_for_status().json()["items"]
        assert [one["lag"] for one in found] == [1], "one of two events is acknowledged"


def test_the_token_for_a_page_reads_one_rendezvous_point_and_nothing_else(site: Domain, tmp_path: Path) -> None:
    tool("curl")
    with site.http(subject="integrator") as http:
        http.post("/api/v1/rps", json={"name": "orders"})  # may be there
        told = ran(blocks("from-a-browser.md", "sh")[0], site, tmp_path, admin=True)
        found = re.search(r'"token": ?"([^"]+)"', told)
        assert found is not None
        visitor = {"Authorization": f"Bearer {found[1]}"}
        assert http.get("/api/v1/rps/orders/events", headers=visitor).status_code == 200
        assert http.post("/api/v1/rps/orders/events", headers=visitor, json=1).status_code == 403


def test_nginx_with_the_configuration_of_the_guide_passes_requests_streams_and_websockets_on(
    site: Domain, tmp_path: Path
) -> None:
    nginx, port = tool("nginx"), free_port()
    stated = blocks("behind-nginx.md", "nginx")[0]
    server = re.sub(r"server 127\.0\.0\.1:8000;", f"server 127.0.0.1:{site.port};", stated)
    server = server.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    server = re.sub(r"^ *ssl_certificate.*\n", "", server, flags=re.MULTILINE)
    paths = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{name}_temp_path {tmp_path}/{name};\n" for name in paths)
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log; worker_processes 1;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{folders}{server}}}\n"
    )
    with (
        closing(Running([nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])) as running,
        site.http(subject="integrator") as http,
    ):
        http.base_url = f"http://127.0.0.1:{port}"
        wait_for(lambda: running.answers(http), about="nginx answers")
        rp = http.post("/api/v1/rps", json={"name": f"proxied-{port}/below"}).raise_for_status().json()
        name = rp["name"].replace("/", "%2F")
        http.post(f"/api/v1/rps/{name}/events", json={"n": 1}).raise_for_status()
        with http.stream("GET", f"/api/v1/rps/{name}/stream?after=earliest") as stream:
            assert next(line for line in stream.iter_lines() if line.startswith("data:")).count('"n"') == 1
        token = site.token(subject="integrator")
        address = f"ws://127.0.0.1:{port}/ws?rp={rp['id']}&from=earliest&access_token={token}"
        with connect(address, subprotocols=[Subprotocol("cloudevents.json")], proxy=None) as socket:
            assert '"n"' in str(socket.recv(60))
        assert http.get("/metrics").status_code == 403


class Running:
    """nginx, until it is closed."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def answers(self, http: httpx.Client) -> bool:
        if self._process.poll() is not None:
            assert self._process.stderr is not None
            raise AssertionError(self._process.stderr.read())
        try:
            return http.get("/livez").status_code == 200
        except httpx.ConnectError:
            return False

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        if self._process.stderr is not None:
            self._process.stderr.close()
