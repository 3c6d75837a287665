"""Load balancers as in deploy/, and gateways of one domain before which they are put, as on several hosts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.harness.servers import READY_WITHIN_S, ROOT, Domain, free_port, wait_for
from portal.supervisor.parent_watchdog import death_signal


def found(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin")


@dataclass(frozen=True)
class Recipe:
    """A balancer: its program, its file in deploy/, how it is started with a file, and how it is told to read the file again."""

    name: str
    file: str
    command: Callable[[str, Path], list[str]]
    reload: Callable[[str, Path, subprocess.Popen[bytes]], None]

    def around(self, text: str, folder: Path) -> str:
        """Return the file as the program takes it alone: nginx's is a part of a larger one."""
        if self.name != "nginx":
            return text
        head = f"daemon off; user root; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1; worker_shutdown_timeout 600s;\n"
        return f"{head}events {{}}\nhttp {{\naccess_log off;\n{text}\n}}\n"


def signalled(number: signal.Signals) -> Callable[[str, Path, subprocess.Popen[bytes]], None]:
    return lambda program, file, process: process.send_signal(number)


RECIPES = (
    Recipe(
        "haproxy",
        "haproxy/haproxy.cfg",
        lambda program, file: [program, "-W", "-f", str(file)],
        signalled(signal.SIGUSR2),
    ),
    Recipe("nginx", "nginx/herald.conf", lambda program, file: [program, "-c", str(file)], signalled(signal.SIGHUP)),
    Recipe(
        "caddy",
        "caddy/Caddyfile",
        lambda program, file: [program, "run", "--adapter", "caddyfile", "--config", str(file)],
        lambda program, file, process: None,
    ),
)


@contextmanager
def gateway(domain: Domain, port: int, **settings: Any) -> Iterator[subprocess.Popen[bytes]]:
    """One more gateway process of a running domain, on a port of its own, as on another host. `settings` are HERALD_* by field."""
    log = domain.data_dir.parent / f"gateway-{port}.out"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "portal.gateway"],
            env={
                **domain.env,
                "HERALD_PORT": str(port),
                "HERALD_PROCESS": f"gateway-{port}",
                "DJANGO_SETTINGS_MODULE": "portal.settings",
                **{f"HERALD_{name.upper()}": str(value) for name, value in settings.items()},
            },
            cwd=ROOT,
            stdout=output,
            stderr=output,
            preexec_fn=death_signal(signal.SIGTERM),
        )
    try:
        wait_for(
            lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}/readyz"),
            READY_WITHIN_S,
            about="the gateway is ready",
        )
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        process.terminate()
        process.wait(60)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


@dataclass(frozen=True)
class Balancer:
    """A running balancer."""

    url: str
    recipe: Recipe
    program: str
    file: Path
    process: subprocess.Popen[bytes]

    def reload(self) -> None:
        self.recipe.reload(self.program, self.file, self.process)


@contextmanager
def balancer(recipe: Recipe, ports: Sequence[int], folder: Path, front: int = 0) -> Iterator[Balancer]:
    """The recipe before gateways at three ports, one of which is up, at a port of its own. Skips where the program is missing."""
    program = found(recipe.name)
    if program is None:
        pytest.skip(f"{recipe.name} is not installed (Debian: apt install {recipe.name})")
    text, front = (ROOT / "deploy" / recipe.file).read_text(), front or free_port()
    for stated, used in zip((8080, 8001, 8002, 8003), (front, *ports), strict=True):
        assert f"127.0.0.1:{stated}" in text
        text = text.replace(f"127.0.0.1:{stated}", f"127.0.0.1:{used}")
    file = folder / Path(recipe.file).name
    file.write_text(recipe.around(text, folder))
    with (folder / "balancer.out").open("wb") as output:
        process = subprocess.Popen(
            recipe.command(program, file),
            stdout=output,
            stderr=output,
            env={**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)},
            preexec_fn=death_signal(signal.SIGTERM),
        )
    try:
        url = f"http://127.0.0.1:{front}"
        wait_for(lambda: process.poll() is not None or answers(f"{url}/readyz"), about="the balancer serves")
        assert process.poll() is None, (folder / "balancer.out").read_text()
        yield Balancer(url, recipe, program, file, process)
    finally:
        process.terminate()
        process.wait(20)
