"""Every program of examples/ runs, publishes or reads at a real domain, and continues where it stopped."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from demo.harness.servers import ROOT, Domain, free_port, wait_for
from tests.examples.running import EXAMPLES, Program, environment, python, running, tool
from tests.portal.console.browsing import CHROMIUM

pytestmark = [pytest.mark.processes, pytest.mark.long]
INSTALL_WITHIN_S = 200


@pytest.fixture
def rp(site: Domain) -> str:
    """The id of a new rendezvous point."""
    with site.http(subject="integrator") as http:
        made: str = http.post("/api/v1/rps", json={}).raise_for_status().json()["id"]
        return made


def publish(site: Domain, rp: str, *data: Any) -> None:
    with site.http(subject="integrator") as http:
        for value in data:
            http.post(f"/api/v1/rps/{rp}/events", json=value).raise_for_status()


def published(site: Domain, rp: str) -> list[dict[str, Any]]:
    with site.http(subject="integrator") as http:
        events: list[dict[str, Any]] = http.get(f"/api/v1/rps/{rp}/events").raise_for_status().json()["events"]
        return events


def test_the_publisher_publishes_and_the_subscriber_goes_on_where_it_stopped(
    site: Domain, rp: str, tmp_path: Path
) -> None:
    with running(*python("python/publisher.py", rp, "3"), domain=site) as publisher:
        assert publisher.ended() == 0, publisher.told
        assert publisher.lines == [f"stored at offset {offset}" for offset in (1, 2, 3)]
    reading = python("python/subscriber.py", rp, tmp_path / "state")
    with running(*reading, domain=site) as subscriber:
        subscriber.wait_for("org.example.temperature", 3)
        wait_for(lambda: kept(tmp_path / "state", 3), about="the place behind the third is kept")
        subscriber.stop()
        assert [line.split()[0] for line in subscriber.lines] == ["1", "2", "3"]
    publish(site, rp, "meanwhile")
    with running(*reading, domain=site) as again:
        assert again.wait_for("meanwhile") == ["4 io.herald.message meanwhile"]


def kept(state: Path, offset: int) -> bool:
    """Whether a state file has the cursor of this event."""
    return state.exists() and re.search(rf":{offset}\b", state.read_text()) is not None


def test_the_worker_processes_what_was_published_while_it_was_stopped_and_puts_poison_aside(
    site: Domain, rp: str, tmp_path: Path
) -> None:
    working = python("python/worker.py", rp, tmp_path / "id")
    publish(site, rp, "first", "poison", "second")
    with running(*working, domain=site) as worker:
        lines = worker.wait_for("second")
        assert [line.split()[0] for line in lines] == ["processed", "put", "processed"]
        subscription = (tmp_path / "id").read_text()
        wait_for(lambda: acknowledged(site, subscription).endswith(":3"), about="the third event is acknowledged")
        worker.stop()
    publish(site, rp, "third")
    with running(*working, domain=site) as again:
        assert [line.split()[-1] for line in again.wait_for("third")] == ["third"]


def test_the_django_shop_publishes_an_order_once_it_is_committed(site: Domain, rp: str, tmp_path: Path) -> None:
    port = free_port()
    serving = python("django/shop.py", "runserver", "--noreload", f"127.0.0.1:{port}")
    database = str(tmp_path / "shop.sqlite3")
    with running(*serving, domain=site, HERALD_RP=rp, SHOP_DATABASE=database):
        order = {"number": "17", "amount": 3}
        answer = wait_for(partial(posted, port, order), about="the shop answers")
        assert answer.status_code == 201, answer.text
        assert posted(port, order).status_code == 500, "the number is taken: the transaction is rolled back"
    assert [(event["id"], event["data"]) for event in published(site, rp)] == [("17", order)]


def posted(port: int, order: Any) -> Any:
    try:
        return httpx.post(f"http://127.0.0.1:{port}/orders", json=order, timeout=60, trust_env=False)
    except httpx.ConnectError:
        return None


def test_the_fastapi_app_publishes_orders_and_lists_what_it_reads(site: Domain, rp: str, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    fetch(sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), "fastapi", what="fastapi")
    port = free_port()
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "uvicorn",
        "app:app",
        "--app-dir",
        EXAMPLES / "fastapi",
        "--port",
        str(port),
    ]
    path = os.pathsep.join([str(ROOT / "client"), str(packages)])
    with running(*command, domain=site, HERALD_RP=rp, PYTHONPATH=path):
        order = {"number": "a-1", "amount": 2}
        answer = wait_for(partial(posted, port, order), about="the app answers")
        assert (answer.status_code, answer.json()) == (201, {"offset": 1}), answer.text
        assert posted(port, order).json() == {"offset": 1}, "the order's number is the event's id"
        listed = partial(httpx.get, f"http://127.0.0.1:{port}/orders", timeout=60, trust_env=False)
        assert wait_for(lambda: listed().json(), about="it has read its own order") == [order]
    assert [event["id"] for event in published(site, rp)] == ["a-1"]


def fetch(*command: str, what: str, cwd: Path | None = None) -> None:
    """Install packages into a folder of the test; it is skipped where they cannot be fetched, but for continuous integration."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False)
        failed = done.stderr if done.returncode else ""
    except subprocess.TimeoutExpired:
        failed = f"not within {INSTALL_WITHIN_S} s"
    if failed and not os.environ.get("CI"):
        pytest.skip(f"{what} cannot be fetched: {failed[-200:]}")
    assert not failed, failed


def test_the_node_program_makes_a_durable_subscription_and_continues_it(site: Domain, rp: str) -> None:
    command: list[str | Path] = [tool("node"), *node_options(), EXAMPLES / "node" / "follow.mjs", rp]
    with running(*command, domain=site) as first:
        lines = first.wait_for("from Node", 1)
        subscription = lines[0].split()[1]
        assert subscription.startswith("sub_")
        wait_for(lambda: acknowledged(site, subscription).endswith(":1"), about="the event is acknowledged")
        first.stop()
    publish(site, rp, "meanwhile")
    with running(*command, subscription, domain=site) as again:
        again.wait_for("from Node", 1)
        assert [line.split()[0] for line in again.lines[2:4]] == ["2", "3"], again.told


def acknowledged(site: Domain, subscription: str) -> str:
    with site.http(subject="integrator") as http:
        cursor: str = http.get(f"/api/v1/subscriptions/{subscription}").raise_for_status().json()["cursor"] or ""
        return cursor


def node_options() -> list[str]:
    major = subprocess.run(
        [tool("node"), "-p", "process.versions.node.split('.')[0]"], capture_output=True, text=True, check=True
    )
    return ["--experimental-websocket"] if int(major.stdout) < 22 else []


def follows_by_http(site: Domain, rp: str, command: list[str | Path], greeting: str, file: Path, cwd: Path) -> None:
    """Read what the program itself publishes, stop it, and read on from the cursor that it kept."""
    publish(site, rp, "earlier")
    with running(*command, rp, file, domain=site, cwd=cwd) as first:
        first.wait_for(greeting)
        assert any("earlier" in line for line in first.lines)
        wait_for(lambda: file.exists() and file.read_text().endswith(":2"), about="the cursor is kept")
        first.stop(signal.SIGTERM)
    publish(site, rp, "meanwhile")
    with running(*command, rp, file, domain=site, cwd=cwd) as again:
        again.wait_for(greeting)
        again.stop(signal.SIGTERM)
        assert [line.split()[0].rpartition(":")[2] for line in again.lines] == ["3", "4"], again.told


def test_the_java_program_publishes_and_resumes_by_http(site: Domain, rp: str, tmp_path: Path) -> None:
    tool("javac")
    command: list[str | Path] = [tool("java"), "-Xshare:auto", EXAMPLES / "java" / "Follow.java"]
    follows_by_http(site, rp, command, "from Java", tmp_path / "cursor", tmp_path)


def test_the_go_program_publishes_and_resumes_by_http(site: Domain, rp: str, tmp_path: Path) -> None:
    built = tmp_path / "follow"
    env = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    done = subprocess.run(
        [tool("go"), "build", "-o", str(built), "."],
        cwd=EXAMPLES / "go",
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    follows_by_http(site, rp, [built], "from Go", tmp_path / "cursor", tmp_path)


@pytest.fixture
def react_page(tmp_path: Path) -> Iterator[str]:
    """The address of the React example, bundled, on a server of its own: another site than the domain."""
    esbuild = ROOT / "portal" / "web" / "node_modules" / ".bin" / "esbuild"
    if not esbuild.exists():
        pytest.skip("esbuild is not installed; run: make .venv/.console-packages")
    folder = tmp_path / "examples" / "react"
    shutil.copytree(EXAMPLES / "react", folder, ignore=shutil.ignore_patterns("node_modules", "app.js"))
    shutil.copytree(ROOT / "client" / "js", tmp_path / "client" / "js")
    npm = [tool("npm"), "install", "--no-audit", "--no-fund", "--loglevel=error", "react@19", "react-dom@19"]
    fetch(*npm, "--omit=dev", what="react", cwd=folder)
    bundling = [str(esbuild), "App.jsx", "--bundle", "--jsx=automatic", "--format=esm", "--outfile=app.js"]
    subprocess.run(bundling, cwd=folder, check=True, capture_output=True, timeout=120)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.mark.browser
def test_the_react_page_shows_events_as_they_arrive_and_publishes(site: Domain, rp: str, react_page: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no Chromium at {CHROMIUM}")
    publish(site, rp, {"celsius": 20})
    query = urlencode({"url": site.url, "rp": rp, "token": site.token(subject="integrator")})
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = chromium.new_page()
        page.goto(f"{react_page}?{query}")
        expect = playwright.expect
        expect.set_options(timeout=60_000)
        expect(page.get_by_role("status")).to_have_text("live")
        expect(page.get_by_role("listitem")).to_have_text([json.dumps({"celsius": 20}, separators=(",", ":"))])
        page.get_by_role("button", name="Publish").click()
        expect(page.get_by_role("listitem").first).to_have_text('{"pressed":true}')
        chromium.close()


def test_programs_show_their_token_to_nobody(site: Domain, rp: str, tmp_path: Path) -> None:
    env = environment(site)
    with Program(*python("python/publisher.py", rp, "1"), env=env) as publisher:
        assert publisher.ended() == 0, publisher.told
        assert env["HERALD_TOKEN"] not in publisher.told
